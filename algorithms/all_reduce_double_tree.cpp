// SPDX-License-Identifier: Apache-2.0
// All-reduce over two binary trees at once, half of the vector each.
//
// Idea: sums go up a binary tree and the result comes down, slice by slice, both ways at once. Inner ranks send three messages a
// slice and leaves one; in the second tree the roles are changed, so that all ranks send alike. For four ranks:
//
//   0 ── 2 ─┬─ 1        3 ── 1 ─┬─ 2
//           └─ 3                └─ 0
//
// Cost: 2 ceil(log2 p) rounds to fill, then at most 2n bytes sent a rank. Wins for medium vectors on many ranks: bytes like a
// ring's, rounds like a tree's. Sanders, Speck & Traeff 2009; NCCL 2.4.
#include "algorithms/algorithms.h"
#include "algorithms/patterns/tree_lanes.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan all_reduce_double_tree(const Request& request) {
  const std::int32_t p = request.world.value, r = request.rank.value;
  Plan plan{.chunks = 2, .credits = 1, .by_reference = true, .pipelined = true};
  for (std::int32_t t = 0; t < 2; ++t) {
    const TreePlace place = double_tree(t, p, r);
    const Chunk mine = input(fixed(t)), partial = scratch(fixed(t)), result = output(fixed(t));
    LaneBuilder up, down;
    if (p == 1) {
      up.copy(mine, result, /*final=*/true);
    } else if (place.parent < 0) {  // the root: what comes up turns round
      const Rotating child = fixed(place.child[0]);
      up.recv_reduce_copy_send(child, mine, result, child, /*final=*/true);
    } else {
      reduce_to_parent(up, place, mine, partial);
      copy_from_parent(down, place, result);
      if (place.children == 2) plan.scratch = t + 1;
    }
    plan.lanes.push_back(up.take(t));
    if (place.parent >= 0) plan.lanes.push_back(down.take(t));
  }
  return plan;
}

}  // namespace shoal::algorithms
