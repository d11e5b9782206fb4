// SPDX-License-Identifier: Apache-2.0
// Broadcast: every rank gets the root's array. Whatever the algorithm, the root's link carries it once.
#include "perf/collectives/collectives.h"
#include "perf/collectives/shares.h"

namespace shoal::perf {
namespace {

Extent extent(std::size_t bytes, std::size_t element_bytes, const Place& place) {
  const std::size_t count = bytes / element_bytes;
  return {.count = count, .send = place.rank == place.root ? count : 0, .receive = count, .total = count, .moved = count};
}

ncclResult_t launch(const Call& call, int /*round*/) {
  return ncclBroadcast(call.send, call.receive, call.count, call.type, call.place.root, call.comm, call.stream);
}

std::int64_t check(Pattern& pattern, const Place& place, const Blocks& /*blocks*/, std::span<const std::byte> receive) {
  return pattern.wrong_inputs(receive, place.root);
}

}  // namespace

constinit const Collective kBroadcast = {.name = "broadcast",
                                         .call = "ncclBroadcast",
                                         .reduces = false,
                                         .rooted = true,
                                         .works_in_place = true,
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
