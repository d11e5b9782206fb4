// SPDX-License-Identifier: Apache-2.0
// Gather: the root gets every rank's block. The size is that of all blocks; all but its own come over the root's link.
#include "perf/collectives/collectives.h"
#include "perf/collectives/shares.h"

namespace shoal::perf {
namespace {

Extent extent(std::size_t bytes, std::size_t element_bytes, const Place& place) {
  const std::size_t block = block_elements(bytes, element_bytes, place.world), all = offset_of(place.world, block);
  return {.count = block, .send = block, .receive = place.rank == place.root ? all : 0, .total = all, .moved = all};
}

InPlace in_place(const Extent& extent, const Place& place) {
  return {.send = place.rank == place.root ? offset_of(place.rank, extent.count) : 0, .receive = 0};
}

ncclResult_t launch(const Call& call, int /*round*/) {
  return ncclGather(call.send, call.receive, call.count, call.type, call.place.root, call.comm, call.stream);
}

}  // namespace

constinit const Collective kGather = {.name = "gather",
                                      .call = "ncclGather",
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
                                      .check = check_gathered};

}  // namespace shoal::perf
