// SPDX-License-Identifier: Apache-2.0
// Reduce up a binomial tree.
//
// Idea: in round k the ranks whose label (distance from the root) has lowest set bit k hand their partial sum to the label
// without it. For four ranks and root 0:
//
//   1 > 0, 3 > 2      2 > 0
//
// Cost: ceil(log2 p) rounds of n bytes, for any p; each rank sends n bytes once. Wins for small vectors. Partial sums meet in
// scratch memory: only the root has an output.
#include "algorithms/algorithms.h"
#include "algorithms/patterns/binomial.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan reduce_binomial(const Request& request) {
  const Binomial tree(request.world, request.root);
  const std::int32_t label = tree.label(request.rank);
  const std::vector<std::int32_t> children = tree.children(label);
  const Chunk mine = input(fixed(0)), result = output(fixed(0)), partial = scratch(fixed(0));

  LaneBuilder lane;
  Chunk sum = mine;
  if (label == 0) {
    if (children.empty()) lane.copy(mine, result, /*final=*/true);
    for (const std::int32_t child : children) {
      lane.recv_reduce(fixed(tree.rank(child)), sum, result, /*final=*/child == children.back());
      sum = result;
    }
    return {.chunks = 1, .credits = 1, .by_reference = true, .lanes = {lane.take()}};
  }
  const Rotating parent = fixed(tree.rank(tree.parent(label)));
  for (const std::int32_t child : children) {
    if (child == children.back())
      lane.recv_reduce_send(fixed(tree.rank(child)), sum, parent);
    else
      lane.recv_reduce(fixed(tree.rank(child)), sum, partial);
    sum = partial;
  }
  if (children.empty()) lane.send(parent, mine);
  return {.chunks = 1, .scratch = children.size() > 1 ? 1 : 0, .credits = 1, .by_reference = true, .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
