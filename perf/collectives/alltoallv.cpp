// SPDX-License-Identifier: Apache-2.0
// All-to-all of blocks of different lengths (traffic.h). The size is the most that a rank sends or receives.
#include <shoal/shoal.h>

#include "perf/collectives/collectives.h"
#include "perf/collectives/shares.h"

namespace shoal::perf {
namespace {

const Traffic& traffic_of(const Place& place) {
  static const Traffic kEven = {.spread = 0, .matrix = {}, .width = 0};
  return place.traffic != nullptr ? *place.traffic : kEven;
}

Blocks blocks(std::size_t bytes, std::size_t element_bytes, const Place& place) {
  const auto elements = [&](int from, int to) {
    return static_cast<std::size_t>(traffic_of(place).block(bytes, from, to, place.world)) / element_bytes;
  };
  Blocks blocks;
  for (int peer = 0; peer < place.world; ++peer) {
    blocks.send.push_back(elements(place.rank, peer));
    blocks.receive.push_back(elements(peer, place.rank));
    std::size_t before = 0;
    for (int rank = 0; rank < place.rank; ++rank) before += elements(peer, rank);
    blocks.origin.push_back(before);
  }
  return blocks;
}

Extent extent(std::size_t bytes, std::size_t element_bytes, const Place& place) {
  Extent extent;
  extent.total = extent.moved = static_cast<std::size_t>(traffic_of(place).most(bytes, place.world)) / element_bytes;
  extent.count = extent.total / static_cast<std::size_t>(place.world);
  for (int peer = 0; peer < place.world; ++peer) {
    extent.send += traffic_of(place).block(bytes, place.rank, peer, place.world) / element_bytes;
    extent.receive += traffic_of(place).block(bytes, peer, place.rank, place.world) / element_bytes;
  }
  return extent;
}

ncclResult_t launch(const Call& call, int /*round*/) {
  return shoalAllToAllV(call.send, call.blocks.send.data(), nullptr, call.receive, call.blocks.receive.data(), nullptr, call.type,
                        call.comm, call.stream);
}

std::int64_t check(Pattern& pattern, const Place& place, const Blocks& blocks, std::span<const std::byte> receive) {
  std::int64_t wrong = 0;
  for (int rank = 0; rank < place.world; ++rank) {
    const auto from = static_cast<std::size_t>(rank);
    const std::size_t length = blocks.receive[from] * pattern.element_bytes();
    wrong += pattern.wrong_inputs(receive.first(length), rank, blocks.origin[from]);
    receive = receive.subspan(length);
  }
  return wrong;
}

}  // namespace

constinit const Collective kAllToAllV = {.name = "alltoallv",
                                         .call = "shoalAllToAllV",
                                         .reduces = false,
                                         .rooted = false,
                                         .works_in_place = false,
                                         .power_of_two = false,
                                         .extent = extent,
                                         .in_place = same_place,
                                         .blocks = blocks,
                                         .bus_factor = all_but_own,
                                         .rounds = once,
                                         .prepare = write_own,
                                         .launch = launch,
                                         .check = check};

}  // namespace shoal::perf
