// SPDX-License-Identifier: Apache-2.0
// All-reduce by parallel aggregated trees (PAT): its reduce-scatter, then its all-gather.
//
// Idea: each chunk has a binomial tree of its own with its owner as the root, all trees being the same but for a shift, so that
// in each round every rank does the same. For four ranks and chunks a b c d, what rank r sends (all others alike, shifted):
//
//             sums to r-1   to r-2     results to r+2   to r+1
//   rank 0    d b           c          A                A C
//   rank 1    a c           d          B                B D
//   rank 2    b d           a          C                C A
//   rank 3    c a           b          D                D B
//
// Cost: 2 ceil(log2 p) rounds and 2(p-1)/p n bytes sent a rank, for any p, over 2 ceil(log2 p) links a rank. Far links carry
// least. Wins for medium vectors in worlds that are no power of two. Jeaugey, "PAT" 2025.
#include <bit>

#include "algorithms/algorithms.h"
#include "algorithms/patterns/pat.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan all_reduce_pat(const Request& request) {
  const World world = request.world;
  const Rank r = request.rank;
  const std::int32_t p = world.value, top = pat_top_bit(world);

  LaneBuilder lane;
  if (p == 1) lane.copy(input(fixed(0)), output(fixed(0)), /*final=*/true);
  // Partial sums meet in the output. Only a leaf's share goes out of the input: all those of the first round, and the last
  // offset's.
  if (p > 1 && p % 2 == 1) lane.copy(input(fixed(next(r, world))), output(fixed(next(r, world))));
  for (std::int32_t bit = 1; bit <= top; bit *= 2) {
    const Buffer source = bit == 1 ? Buffer::input : Buffer::output;
    const Rank upper = pat_upper(world, r, bit), lower = pat_lower(world, r, bit);
    lane.send(fixed(lower), pat_set(source, world, lower, bit));
    lane.recv_reduce(fixed(upper), pat_set(source, world, r, bit), pat_set(Buffer::output, world, r, bit), /*final=*/bit == top);
  }
  for (std::int32_t bit = top; bit > 0; bit /= 2) {
    const Rank upper = pat_upper(world, r, bit), lower = pat_lower(world, r, bit);
    lane.send(fixed(upper), pat_set(Buffer::output, world, r, bit));
    lane.recv(fixed(lower), pat_set(Buffer::output, world, lower, bit));
  }
  const bool by_reference = std::has_single_bit(static_cast<std::uint32_t>(p));  // else the leaf's share is overwritten too early
  return {.chunks = p, .credits = 1, .by_reference = by_reference, .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
