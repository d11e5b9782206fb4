// SPDX-License-Identifier: Apache-2.0
// Broadcast straight from the root.
//
// Idea: the root sends the vector to every other rank, one after the other. For four ranks and root 1:
//
//   1 -> 2   1 -> 3   1 -> 0
//
// Cost: no rank but the root forwards anything, so every rank is one hop away; the root sends (p-1) n bytes. Wins for very few
// ranks, and where only the root's links are fast.
#include "algorithms/algorithms.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan broadcast_linear(const Request& request) {
  const std::int32_t p = request.world.value;
  const Rotating whole = fixed(Rank{0});

  LaneBuilder lane;
  if (request.rank == request.root) {
    lane.loop(p - 1, [&] { lane.send(rotating(request.root.value + 1, 1, p), input(whole)); });
    lane.copy(input(whole), output(whole));
  } else {
    lane.recv(fixed(request.root), output(whole));
  }
  return {.chunks = 1, .credits = 1, .by_reference = true, .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
