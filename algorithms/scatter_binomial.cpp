// SPDX-License-Identifier: Apache-2.0
// Scatter down a binomial tree.
//
// Idea: the blocks under a rank of the tree are those of a window of labels (rank - root mod p): it receives them as one message
// into scratch and sends its children their windows, the largest first. The root sends straight from the input. For four ranks
// and root 0 with blocks a b c d:
//
//   round 1   0 -> 2: c d
//   round 2   0 -> 1: b   2 -> 3: d
//
// Cost: ceil(log2 p) rounds; the root sends (p-1)/p n bytes, the rank under it half of that. Wins for short blocks, where rounds
// count.
#include <ranges>

#include "algorithms/algorithms.h"
#include "algorithms/patterns/binomial.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan scatter_binomial(const Request& request) {
  const std::int32_t p = request.world.value;
  const Binomial tree(request.world, request.root);
  const std::int32_t label = tree.label(request.rank), held = tree.subtree(label);
  const Chunk mine = output(fixed(request.rank));
  const bool root = label == 0, forwards = !root && held > 1;
  // The blocks under a label: at their places at the root, from slot 0 on in the scratch of the others.
  const auto under = [&](std::int32_t v) {
    if (root) return window(Buffer::input, fixed(tree.rank(v)), tree.subtree(v), p);
    return window(Buffer::scratch, fixed(v - label), tree.subtree(v));
  };

  LaneBuilder lane;
  if (!root) lane.recv(fixed(tree.rank(tree.parent(label))), forwards ? under(label) : mine);
  for (const std::int32_t child : tree.children(label) | std::views::reverse) lane.send(fixed(tree.rank(child)), under(child));
  if (root) lane.copy(input(fixed(request.rank)), mine);
  if (forwards) lane.copy(scratch(fixed(0)), mine);
  // A block that is forwarded alone refers to a slot that the next slice overwrites; below four ranks nobody forwards.
  return {.chunks = 1, .scratch = forwards ? held : 0, .credits = 1, .by_reference = p < 4, .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
