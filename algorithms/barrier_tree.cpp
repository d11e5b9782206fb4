// SPDX-License-Identifier: Apache-2.0
// Barrier up and down a binomial tree.
//
// Idea: a rank that has heard from its children signals its parent; when the root has heard from all, signals go back down. For
// four ranks:
//
//   up     1 -> 0   3 -> 2   then   2 -> 0
//   down   0 -> 2            then   0 -> 1   2 -> 3
//
// Cost: 2 ceil(log2 p) rounds, but only 2(p-1) signals in all. Wins where messages cost more than rounds: many ranks on few
// cores.
#include <ranges>

#include "algorithms/algorithms.h"
#include "algorithms/patterns/binomial.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan barrier_tree(const Request& request) {
  const Binomial tree(request.world, Rank{0});
  const std::int32_t label = tree.label(request.rank);
  const auto children = tree.children(label);

  LaneBuilder lane;
  for (const std::int32_t child : children) lane.wait(fixed(tree.rank(child)));
  if (label != 0) {
    const Rotating parent = fixed(tree.rank(tree.parent(label)));
    lane.signal(parent);
    lane.wait(parent);
  }
  for (const std::int32_t child : children | std::views::reverse) lane.signal(fixed(tree.rank(child)));
  return {.chunks = 1, .credits = 1, .by_reference = true, .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
