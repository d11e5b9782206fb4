// SPDX-License-Identifier: Apache-2.0
// Gather straight to the root.
//
// Idea: every rank sends its block to the root, which takes them in the order of ranks after its own. For four ranks and root 1:
//
//   2 -> 1   3 -> 1   0 -> 1
//
// Cost: one hop; the root receives p-1 messages, (p-1)/p n bytes (the least possible). Wins for long blocks or few ranks.
#include "algorithms/algorithms.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan gather_linear(const Request& request) {
  const std::int32_t p = request.world.value, r = request.rank.value;

  LaneBuilder lane;
  if (request.rank == request.root) {
    const Rotating other = rotating(r + 1, 1, p);
    lane.copy(input(fixed(r)), output(fixed(r)));
    lane.loop(p - 1, [&] { lane.recv(other, output(other)); });
  } else {
    lane.send(fixed(request.root), input(fixed(r)));
  }
  return {.chunks = 1, .credits = 1, .by_reference = true, .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
