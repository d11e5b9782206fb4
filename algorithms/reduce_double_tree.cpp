// SPDX-License-Identifier: Apache-2.0
// Reduce up two binary trees at once, half of the vector each.
//
// Idea: the root stands above both trees, which are over the other p-1 ranks; whoever is inner in one is a leaf of the other, so
// that all ranks send and add alike. For five ranks and root 0 (second tree: the first one mirrored):
//
//   0 ── 1 ── 3 ─┬─ 2        0 ── 4 ── 2 ─┬─ 3
//                └─ 4                     └─ 1
//
// Cost: at most ceil(log2 p) + 1 rounds to fill, then n bytes sent a rank: half in each tree. Wins for large vectors on many
// ranks. Sanders, Speck & Traeff 2009.
#include "algorithms/algorithms.h"
#include "algorithms/patterns/tree_lanes.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan reduce_double_tree(const Request& request) {
  const std::int32_t p = request.world.value, below = p - 1;
  // Nodes of the trees are the ranks after the root, in order.
  const auto rank_of = [&](std::int32_t node) { return (request.root.value + 1 + node) % p; };
  const std::int32_t node = (request.rank.value - request.root.value - 1 + p) % p;  // p-1: the root

  Plan plan{.chunks = 2, .credits = 1, .by_reference = true, .pipelined = true};
  for (std::int32_t t = 0; t < 2; ++t) {
    const Chunk mine = input(fixed(t)), result = output(fixed(t));
    LaneBuilder lane;
    if (p == 1) {
      lane.copy(mine, result, /*final=*/true);
    } else if (node == below) {
      lane.recv_reduce(fixed(rank_of(double_tree_root(t, below))), mine, result, /*final=*/true);
    } else {
      TreePlace place = double_tree(t, below, node);
      place.parent = place.parent < 0 ? request.root.value : rank_of(place.parent);
      for (std::int32_t c = 0; c < place.children; ++c) place.child[c] = rank_of(place.child[c]);
      reduce_to_parent(lane, place, mine, scratch(fixed(t)));
      if (place.children == 2) plan.scratch = t + 1;
    }
    plan.lanes.push_back(lane.take(t));
  }
  return plan;
}

}  // namespace shoal::algorithms
