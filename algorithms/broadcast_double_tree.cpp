// SPDX-License-Identifier: Apache-2.0
// Broadcast down two binary trees at once, half of the vector each.
//
// Idea: in a binary tree half of the ranks are leaves, which only receive. In the second tree these are the inner ones, so that
// all links work both ways. The root stands above both and feeds one child in each. For eight ranks and root 0:
//
//        0               0
//        |               |
//        4               5            the second is the first over labels shifted by one: 5 plays 4. Where the number of
//      /   \           /   \          the others, p-1, is even, it is mirrored: p-4 plays 4.
//     2     6         3     7
//    / \   / \       / \   / \        No label is an inner one in both.
//   1   3 5   7     2   4 6   1
//
// Cost: ceil(log2 p) rounds to fill, where serving two children takes one more each; in the steady state a rank receives n bytes
// and sends n at most. Wins for long vectors on many ranks. Sanders, Speck & Traeff, "Two-tree algorithms for full bandwidth
// broadcast, reduction and scan" 2009.
#include "algorithms/algorithms.h"
#include "algorithms/patterns/double_tree.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

namespace {

// The label that plays `label` of the first tree in tree 0 or 1, and back. The root is itself in both.
constexpr std::int32_t player(std::int32_t tree, std::int32_t p, std::int32_t label) {
  if (tree == 0 || label <= 0) return label;
  return p % 2 != 0 ? p - label : label % (p - 1) + 1;
}
constexpr std::int32_t played(std::int32_t tree, std::int32_t p, std::int32_t label) {
  if (tree == 0 || label <= 0) return label;
  return p % 2 != 0 ? p - label : (label + p - 3) % (p - 1) + 1;
}

}  // namespace

Plan broadcast_double_tree(const Request& request) {
  const std::int32_t p = request.world.value, root = request.root.value;
  const std::int32_t label = (request.rank.value - root + p) % p;

  Plan plan{.chunks = 2, .credits = 1, .by_reference = true, .pipelined = true};
  for (const std::int32_t tree : {0, 1}) {
    const TreePlace place = first_tree(p, played(tree, p, label));
    const auto peer = [&](std::int32_t other) { return rotating(player(tree, p, other) + root, 0, p); };
    const Rotating half = fixed(tree);

    LaneBuilder lane;
    if (label == 0) {
      if (p > 1) lane.send(peer(place.child[0]), input(half));
      lane.copy(input(half), output(half));
    } else if (place.children == 0) {
      lane.recv(peer(place.parent), output(half));
    } else {
      lane.recv_copy_send(peer(place.parent), output(half), peer(place.child[0]));
      if (place.children == 2) lane.send(peer(place.child[1]), output(half));
    }
    plan.lanes.push_back(lane.take(tree));
  }
  return plan;
}

}  // namespace shoal::algorithms
