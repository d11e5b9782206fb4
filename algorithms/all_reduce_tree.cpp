// SPDX-License-Identifier: Apache-2.0
// All-reduce over a binomial tree: sums go up to rank 0, the result comes down the same way.
//
// For four ranks, who sends to whom:
//
//   1 > 0, 3 > 2      2 > 0      0 > 2      0 > 1, 2 > 3
//
// Cost: 2 ceil(log2 p) rounds of n bytes, for any p; rank 0 sends n log2 p, most ranks n. Wins for small vectors in worlds that
// are no power of two, where recursive doubling folds and sends about as often.
#include <bit>

#include "algorithms/algorithms.h"
#include "algorithms/patterns/binomial.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan all_reduce_tree(const Request& request) {
  const std::int32_t p = request.world.value, r = request.rank.value;
  const Binomial tree(request.world, Rank{0});
  const std::vector<std::int32_t> children = tree.children(r);
  const Chunk mine = input(fixed(0)), result = output(fixed(0));

  LaneBuilder lane;
  if (p == 1) lane.copy(mine, result, /*final=*/true);
  Chunk sum = mine;
  for (const std::int32_t child : children) {
    lane.recv_reduce(fixed(child), sum, result, /*final=*/r == 0 && child == children.back());
    sum = result;
  }
  if (r != 0) {
    lane.send(fixed(tree.parent(r)), sum);
    lane.recv(fixed(tree.parent(r)), result);
  }
  for (auto child = children.rbegin(); child != children.rend(); ++child) lane.send(fixed(*child), result);
  // In powers of two the tree is recursive doubling's.
  const bool butterfly = std::has_single_bit(static_cast<std::uint32_t>(p));
  return {.chunks = 1, .credits = 1, .order = butterfly ? Order::butterfly : Order::any, .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
