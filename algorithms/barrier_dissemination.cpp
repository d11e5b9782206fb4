// SPDX-License-Identifier: Apache-2.0
// Barrier by dissemination.
//
// Idea: in round k each rank signals the rank 2^k above and waits for the one 2^k below; what it has heard of doubles each round.
// For four ranks, of whom each has heard:
//
//   rank 0   0   3 0   1 2 3 0
//   rank 1   1   0 1   2 3 0 1
//   rank 2   2   1 2   3 0 1 2
//   rank 3   3   2 3   0 1 2 3
//
// Cost: ceil(log2 p) rounds, the fewest possible, of one signal a rank, for any p. Hensgen, Finkel & Manber 1988.
#include "algorithms/algorithms.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan barrier_dissemination(const Request& request) {
  const std::int32_t p = request.world.value, r = request.rank.value;

  LaneBuilder lane;
  for (std::int32_t distance = 1; distance < p; distance *= 2) {
    lane.signal(rotating(r + distance, 0, p));
    lane.wait(rotating(r - distance, 0, p));
  }
  return {.chunks = 1, .credits = 1, .by_reference = true, .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
