// SPDX-License-Identifier: Apache-2.0
// All-gather by parallel aggregated trees (PAT).
//
// Idea: each block goes down a binomial tree from its owner, and all trees are the same but for a shift: in the round of distance
// d every rank sends one message to the rank d above, with one block of each tree that has an edge there. Far rounds come first.
// For four ranks with blocks a b c d, what each rank sends in each round:
//
//            to r+2   to r+1
//   rank 0   a        a, c
//   rank 1   b        b, d
//   rank 2   c        c, a
//   rank 3   d        d, b
//
// Cost: ceil(log2 p) rounds and (p-1)/p n bytes sent a rank, for any p, as Bruck's; but the far round carries one block and the
// near one p/2: p/2 log2 p times a block crosses from a rank to the next, against (p^2-1)/3. Wins for short blocks on networks
// where far is slow. Jeaugey, "PAT: a new algorithm for all-gather and reduce-scatter operations at scale" 2025.
#include "algorithms/algorithms.h"
#include "algorithms/patterns/pat.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan all_gather_pat(const Request& request) {
  const World world = request.world;
  const Rank r = request.rank;

  LaneBuilder lane;
  lane.copy(input(fixed(r)), output(fixed(r)));
  for (std::int32_t bit = pat_top_bit(world); bit > 0; bit /= 2) {
    const Rank upper = pat_upper(world, r, bit), lower = pat_lower(world, r, bit);
    lane.send(fixed(upper), pat_set(Buffer::output, world, r, bit));
    lane.recv(fixed(lower), pat_set(Buffer::output, world, lower, bit));
  }
  return {.chunks = 1, .credits = 1, .by_reference = true, .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
