// SPDX-License-Identifier: Apache-2.0
// Scatter: every rank gets its block from the root. The size is that of all blocks; all but its own leave the root.
#include "perf/collectives/collectives.h"
#include "perf/collectives/shares.h"

namespace shoal::perf {
namespace {

Extent extent(std::size_t bytes, std::size_t element_bytes, const Place& place) {
  const std::size_t block = block_elements(bytes, element_bytes, place.world), all = offset_of(place.world, block);
  return {.count = block, .send = place.rank == place.root ? all : 0, .receive = block, .total = all, .moved = all};
}

InPlace in_place(const Extent& extent, const Place& place) {
  return {.send = 0, .receive = place.rank == place.root ? offset_of(place.rank, extent.count) : 0};
}

ncclResult_t launch(const Call& call, int /*round*/) {
  return ncclScatter(call.send, call.receive, call.count, call.type, call.place.root, call.comm, call.stream);
}

std::int64_t check(Pattern& pattern, const Place& place, const Blocks& /*blocks*/, std::span<const std::byte> receive) {
  return pattern.wrong_inputs(receive, place.root, offset_of(place.rank, pattern.elements(receive)));
}

}  // namespace

constinit const Collective kScatter = {.name = "scatter",
                                       .call = "ncclScatter",
                                       .reduces = false,
                                       .rooted = true,
                                       .works_in_place = true,
                                       .power_of_two = false,
                                       .extent = extent,
                                       .in_place = in_place,
                                       .blocks = nullptr,
                                       .bus_factor = all_but_own,
                                       .rounds = once,
                                       .prepare = write_own,
                                       .launch = launch,
                                       .check = check};

}  // namespace shoal::perf
