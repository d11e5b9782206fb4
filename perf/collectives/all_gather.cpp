// SPDX-License-Identifier: Apache-2.0
// All-gather: every rank gets every rank's block. The size is that of all blocks; a rank receives all but its own.
#include "perf/collectives/collectives.h"
#include "perf/collectives/shares.h"

namespace shoal::perf {
namespace {

Extent extent(std::size_t bytes, std::size_t element_bytes, const Place& place) {
  const std::size_t block = block_elements(bytes, element_bytes, place.world), all = offset_of(place.world, block);
  return {.count = block, .send = block, .receive = all, .total = all, .moved = all};
}

InPlace in_place(const Extent& extent, const Place& place) { return {.send = offset_of(place.rank, extent.count), .receive = 0}; }

ncclResult_t launch(const Call& call, int /*round*/) {
  return ncclAllGather(call.send, call.receive, call.count, call.type, call.comm, call.stream);
}

}  // namespace

constinit const Collective kAllGather = {.name = "all_gather",
                                         .call = "ncclAllGather",
                                         .reduces = false,
                                         .rooted = false,
                                         .works_in_place = true,
                                         .power_of_two = false,
                                         .extent = extent,
                                         .in_place = in_place,
                                         .blocks = nullptr,
                                         .bus_factor = all_but_own,
                                         .rounds = once,
                                         .prepare = write_own,
                                         .launch = launch,
                                         .check = check_gathered};

}  // namespace shoal::perf
