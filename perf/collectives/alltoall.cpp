// SPDX-License-Identifier: Apache-2.0
// All-to-all: every rank has a block for every rank. The size is that of one rank's blocks; all but one leave it.
#include "perf/collectives/collectives.h"
#include "perf/collectives/shares.h"

namespace shoal::perf {
namespace {

Extent extent(std::size_t bytes, std::size_t element_bytes, const Place& place) {
  const std::size_t block = block_elements(bytes, element_bytes, place.world), all = offset_of(place.world, block);
  return {.count = block, .send = all, .receive = all, .total = all, .moved = all};
}

ncclResult_t launch(const Call& call, int /*round*/) {
  return ncclAlltoAll(call.send, call.receive, call.count, call.type, call.comm, call.stream);
}

std::int64_t check(Pattern& pattern, const Place& place, const Blocks& /*blocks*/, std::span<const std::byte> receive) {
  std::int64_t wrong = 0;
  for (int rank = 0; rank < place.world; ++rank) {
    const std::span<const std::byte> block = block_of(receive, rank, place.world);
    wrong += pattern.wrong_inputs(block, rank, offset_of(place.rank, pattern.elements(block)));
  }
  return wrong;
}

}  // namespace

constinit const Collective kAllToAll = {.name = "alltoall",
                                        .call = "ncclAlltoAll",
                                        .reduces = false,
                                        .rooted = false,
                                        .works_in_place = false,
                                        .power_of_two = false,
                                        .extent = extent,
                                        .in_place = same_place,
                                        .blocks = nullptr,
                                        .bus_factor = all_but_own,
                                        .rounds = once,
                                        .prepare = write_own,
                                        .launch = launch,
                                        .check = check};

}  // namespace shoal::perf
