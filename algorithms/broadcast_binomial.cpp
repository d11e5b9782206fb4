// SPDX-License-Identifier: Apache-2.0
// Broadcast down a binomial tree.
//
// Idea: whoever has the vector hands it on, so that the number of ranks that have it doubles each round; the farthest first, for
// it has the most to serve. For four ranks and root 0, who sends to whom:
//
//   round 1   0 -> 2
//   round 2   0 -> 1   2 -> 3
//
// Cost: ceil(log2 p) rounds of n bytes; the root sends up to n ceil(log2 p). Wins for short vectors, where rounds count.
#include <ranges>

#include "algorithms/algorithms.h"
#include "algorithms/patterns/binomial.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan broadcast_binomial(const Request& request) {
  const Binomial tree(request.world, request.root);
  const std::int32_t label = tree.label(request.rank);
  const Rotating whole = fixed(Rank{0});  // one chunk: the vector

  LaneBuilder lane;
  if (label != 0) lane.recv(fixed(tree.rank(tree.parent(label))), output(whole));
  for (const std::int32_t child : tree.children(label) | std::views::reverse)
    lane.send(fixed(tree.rank(child)), label == 0 ? input(whole) : output(whole));
  if (label == 0) lane.copy(input(whole), output(whole));
  return {.chunks = 1, .credits = 1, .by_reference = true, .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
