// SPDX-License-Identifier: Apache-2.0
// Reduce-scatter by parallel aggregated trees (PAT): the all-gather of that name backwards in time.
//
// Idea: each block goes up a binomial tree to its owner, all trees being the same but for a shift; in the round of distance d
// every rank sends one message to the rank d below, with one block of each tree that has an edge there. For four ranks and blocks
// a b c d:
//
//            to r-1   to r-2
//   rank 0   d b      c
//   rank 1   a c      d
//   rank 2   b d      a
//   rank 3   c a      b
//
// Cost: ceil(log2 p) rounds, (p-1)/p n bytes sent a rank and as many added, for any p; far links carry least. Wins for short
// blocks, above all in worlds that are no power of two. Memory for p/2 partial sums: a rank at an odd offset of a tree is a leaf.
// Jeaugey, "PAT: a new algorithm for all-gather and reduce-scatter operations at scale" 2025.
#include "algorithms/algorithms.h"
#include "algorithms/patterns/pat.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan reduce_scatter_pat(const Request& request) {
  const World world = request.world;
  const Rank r = request.rank;
  const std::int32_t p = world.value, top = pat_top_bit(world);
  const Chunk result = output(fixed(r));

  // The partial sum of the block that has this rank at offset s waits in slot s / 2.
  const auto partials = [&](std::int32_t offset, std::int32_t bit) {
    return every(Buffer::scratch, fixed(offset / 2), pat_blocks(world, bit), bit);
  };

  LaneBuilder lane;
  if (p == 1) lane.copy(input(fixed(r)), result, /*final=*/true);
  // The last offset has no children; where it is even its share waits for its round like a sum.
  if (p > 1 && p % 2 == 1) lane.copy(input(fixed(next(r, world))), scratch(fixed((p - 1) / 2)));
  for (std::int32_t bit = 1; bit <= top; bit *= 2) {
    const Rank upper = pat_upper(world, r, bit), lower = pat_lower(world, r, bit);
    lane.send(fixed(lower), bit == 1 ? pat_set(Buffer::input, world, lower, bit) : partials(bit, bit));
    lane.recv_reduce(fixed(upper), bit == 1 ? pat_set(Buffer::input, world, r, bit) : partials(0, bit),
                     bit == top ? result : partials(0, bit), /*final=*/bit == top);
  }
  return {.chunks = 1, .scratch = p <= 2 ? 0 : (p + 1) / 2, .credits = 1, .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
