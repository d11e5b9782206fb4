// SPDX-License-Identifier: Apache-2.0
// Scatter straight from the root.
//
// Idea: the root sends every rank its block, in the order of ranks after its own. For four ranks and root 1:
//
//   1 -> 2   1 -> 3   1 -> 0
//
// Cost: one hop; the root sends p-1 messages, (p-1)/p n bytes (the least possible). Wins for long blocks or few ranks.
#include "algorithms/algorithms.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan scatter_linear(const Request& request) {
  const std::int32_t p = request.world.value, r = request.rank.value;

  LaneBuilder lane;
  if (request.rank == request.root) {
    const Rotating other = rotating(r + 1, 1, p);
    lane.loop(p - 1, [&] { lane.send(other, input(other)); });
    lane.copy(input(fixed(r)), output(fixed(r)));
  } else {
    lane.recv(fixed(request.root), output(fixed(r)));
  }
  return {.chunks = 1, .credits = 1, .by_reference = true, .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
