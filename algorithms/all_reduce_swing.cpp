// SPDX-License-Identifier: Apache-2.0
// All-reduce by Swing, folding worlds that are no power of two.
//
// Idea: halving and doubling, but partners swing from side to side at distances 1, -1, 3, -5, 11, ... (even ranks; odd ranks the
// other way), so that on a ring or torus a message crosses fewer links: at most 2^k in round k, a third less in the sum. For
// eight ranks, with whom each swaps in the three rounds of the reduce-scatter:
//
//   rank      0  1  2  3  4  5  6  7
//   round 0   1  0  3  2  5  4  7  6
//   round 1   7  2  1  4  3  6  5  0
//   round 2   3  6  5  0  7  2  1  4
//
// Cost: as halving and doubling: 2 log2 p rounds, 2(p-1)/p n bytes sent a rank. Chunks are numbered so that whatever a rank sends
// is one window. Wins on tori. De Sensi et al., "Swing: short-cutting rings for higher bandwidth allreduce" 2024.
#include "algorithms/algorithms.h"
#include "algorithms/patterns/butterfly.h"

namespace shoal::algorithms {

plan::Plan all_reduce_swing(const plan::Request& request) { return butterfly_all_reduce(request, Butterfly::Kind::swing); }

}  // namespace shoal::algorithms
