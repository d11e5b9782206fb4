// SPDX-License-Identifier: Apache-2.0
// All-reduce over two rings in opposite directions, half of the vector each.
//
// Idea: links carry data both ways at once, and one ring uses one way. The first ring has chunks 0..p-1, the second chunks
// p..2p-1 and rank r in place p-1-r. For four ranks, who sends to whom:
//
//   first    0 > 1 > 2 > 3 > 0
//   second   0 < 1 < 2 < 3 < 0
//
// Cost: 2(p-1) rounds of half the bytes, 2(p-1)/p n bytes sent a rank in all. Wins over one ring where a rank's link to the next
// is the bottleneck, rather than its memory. See all_reduce_ring.cpp.
#include "algorithms/algorithms.h"
#include "plan/compose.h"

namespace shoal::algorithms {

using namespace plan;

Plan all_reduce_two_rings(const Request& request) {
  const std::int32_t p = request.world.value, last = p - 1;
  Request mirrored = request;
  mirrored.rank = {last - request.rank.value};

  Plan plan = all_reduce_ring(request);
  plan.lanes.push_back(
      embed(all_reduce_ring(mirrored).lanes[0], {.rank_base = last, .rank_scale = -1, .chunk_base = plan.chunks}));
  plan.lanes[1].channel = 1;
  plan.chunks *= 2;
  return plan;
}

}  // namespace shoal::algorithms
