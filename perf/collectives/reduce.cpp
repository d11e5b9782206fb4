// SPDX-License-Identifier: Apache-2.0
// Reduce: the root gets the reduction over all. Whatever the algorithm, its link carries the array once.
#include "perf/collectives/collectives.h"
#include "perf/collectives/shares.h"

namespace shoal::perf {
namespace {

Extent extent(std::size_t bytes, std::size_t element_bytes, const Place& place) {
  const std::size_t count = bytes / element_bytes;
  return {.count = count, .send = count, .receive = place.rank == place.root ? count : 0, .total = count, .moved = count};
}

ncclResult_t launch(const Call& call, int /*round*/) {
  return ncclReduce(call.send, call.receive, call.count, call.type, call.op, call.place.root, call.comm, call.stream);
}

std::int64_t check(Pattern& pattern, const Place& /*place*/, const Blocks& /*blocks*/, std::span<const std::byte> receive) {
  return pattern.wrong_results(receive);
}

}  // namespace

constinit const Collective kReduce = {.name = "reduce",
                                      .call = "ncclReduce",
                                      .reduces = true,
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
