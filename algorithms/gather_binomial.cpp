// SPDX-License-Identifier: Apache-2.0
// Gather up a binomial tree.
//
// Idea: the blocks under a rank of the tree are those of a window of labels (rank - root mod p): it collects its children's
// windows in scratch, smallest first, and sends its own as one message. The root receives straight into the output. For four
// ranks and root 0 with blocks a b c d:
//
//   round 1   1 -> 0: b   3 -> 2: d
//   round 2   2 -> 0: c d
//
// Cost: ceil(log2 p) rounds; the root receives (p-1)/p n bytes, the rank under it half of that. Wins for short blocks, where
// rounds count.
#include "algorithms/algorithms.h"
#include "algorithms/patterns/binomial.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan gather_binomial(const Request& request) {
  const std::int32_t p = request.world.value;
  const Binomial tree(request.world, request.root);
  const std::int32_t label = tree.label(request.rank), held = tree.subtree(label);
  const Chunk mine = input(fixed(request.rank));
  const bool root = label == 0, forwards = !root && held > 1;
  // The blocks under a label: at their places at the root, from slot 0 on in the scratch of the others.
  const auto under = [&](std::int32_t v) {
    if (root) return window(Buffer::output, fixed(tree.rank(v)), tree.subtree(v), p);
    return window(Buffer::scratch, fixed(v - label), tree.subtree(v));
  };

  LaneBuilder lane;
  if (root) lane.copy(mine, output(fixed(request.rank)));
  if (forwards) lane.copy(mine, scratch(fixed(0)));
  for (const std::int32_t child : tree.children(label)) lane.recv(fixed(tree.rank(child)), under(child));
  if (!root) lane.send(fixed(tree.rank(tree.parent(label))), forwards ? under(label) : mine);
  return {.chunks = 1, .scratch = forwards ? held : 0, .credits = 1, .by_reference = true, .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
