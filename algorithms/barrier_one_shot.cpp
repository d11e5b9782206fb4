// SPDX-License-Identifier: Apache-2.0
// Barrier in one shot between ranks of one host.
//
// Idea: everybody tells everybody, then hears everybody.
//
// Cost: 1 round, p-1 signals a rank; over boards one store and p-1 looks. Wins for few ranks of one host.
#include "algorithms/algorithms.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan barrier_one_shot(const Request& request) {
  const std::int32_t p = request.world.value, r = request.rank.value;
  if (p > 64) return {.refusal = "memory is shared by at most 64 ranks"};
  LaneBuilder lane;
  if (p == 1) return {.lanes = {lane.take()}};
  lane.loop(p - 1, [&] { lane.signal(rotating(r + 1, 1, p)); });
  lane.loop(p - 1, [&] { lane.wait(rotating(r - 1, -1, p)); });
  return {.chunks = 1, .credits = 1, .boards = Boards::one_shot, .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
