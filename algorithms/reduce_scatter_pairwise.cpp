// SPDX-License-Identifier: Apache-2.0
// Reduce-scatter in which every block goes straight to its owner, which adds in the order of ranks.
//
// For four ranks with blocks a b c d, what each sends, the block of the rank above it first:
//
//   rank 0   b c d
//   rank 1   c d a
//   rank 2   d a b
//   rank 3   a b c
//
// Cost: 1 round of p-1 messages, (p-1)/p n bytes sent a rank and as many added. Wins for short and medium blocks where every pair
// of ranks has a link of its own; the sum is that of a loop over the ranks.
#include "algorithms/algorithms.h"
#include "algorithms/patterns/rank_order.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan reduce_scatter_pairwise(const Request& request) {
  const std::int32_t p = request.world.value, r = request.rank.value;
  const Chunk mine = input(fixed(r)), result = output(fixed(r));
  const Rotating above = rotating(r + 1, 1, p);

  LaneBuilder lane;
  if (p == 1) {
    lane.copy(mine, result, /*final=*/true);
  } else {
    lane.loop(p - 1, [&] { lane.send(above, input(above)); });
    recv_in_rank_order(lane, request.rank, request.world, mine, scratch(fixed(0)), result);
  }
  return {.chunks = 1, .scratch = r > 0 ? 1 : 0, .credits = 1, .by_reference = true, .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
