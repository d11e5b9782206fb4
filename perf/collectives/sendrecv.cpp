// SPDX-License-Identifier: Apache-2.0
// Send and receive: every rank sends its array to the next one, all at once.
#include "perf/collectives/collectives.h"
#include "perf/collectives/shares.h"
#include "perf/group.h"

namespace shoal::perf {
namespace {

Extent extent(std::size_t bytes, std::size_t element_bytes, const Place& /*place*/) {
  const std::size_t count = bytes / element_bytes;
  return {.count = count, .send = count, .receive = count, .total = count, .moved = count};
}

int before(const Place& place) { return (place.rank + place.world - 1) % place.world; }
int after(const Place& place) { return (place.rank + 1) % place.world; }

ncclResult_t launch(const Call& call, int /*round*/) {
  return in_group(true, [&call] {
    const ncclResult_t sent = ncclSend(call.send, call.count, call.type, after(call.place), call.comm, call.stream);
    if (sent != ncclSuccess) return sent;
    return ncclRecv(call.receive, call.count, call.type, before(call.place), call.comm, call.stream);
  });
}

std::int64_t check(Pattern& pattern, const Place& place, const Blocks& /*blocks*/, std::span<const std::byte> receive) {
  return pattern.wrong_inputs(receive, before(place));
}

}  // namespace

constinit const Collective kSendRecv = {.name = "sendrecv",
                                        .call = "ncclSend and ncclRecv",
                                        .reduces = false,
                                        .rooted = false,
                                        .works_in_place = false,
                                        .power_of_two = false,
                                        .extent = extent,
                                        .in_place = same_place,
                                        .blocks = nullptr,
                                        .bus_factor = all_of_it,
                                        .rounds = once,
                                        .prepare = write_own,
                                        .launch = launch,
                                        .check = check};

}  // namespace shoal::perf
