// SPDX-License-Identifier: Apache-2.0
// All-reduce in one round: everybody sends the whole vector to everybody.
//
// Idea: all p reductions at once. Each rank sends to the ranks above it first, so that no two start with the same one, and adds
// what arrives in the order of ranks, so that all get the same bits. For four ranks, to whom each sends:
//
//   rank 0   1 2 3
//   rank 1   2 3 0
//   rank 2   3 0 1
//   rank 3   0 1 2
//
// Cost: 1 round, (p-1)n bytes sent a rank, (p-1)n added. Wins for tiny vectors and few ranks, where only the number of rounds
// counts.
#include "algorithms/algorithms.h"
#include "algorithms/patterns/rank_order.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan all_reduce_all_pairs(const Request& request) {
  const std::int32_t p = request.world.value, r = request.rank.value;
  const Chunk mine = input(fixed(0)), result = output(fixed(0));

  LaneBuilder lane;
  if (p == 1) {
    lane.copy(mine, result, /*final=*/true);
    return {.lanes = {lane.take()}};
  }
  lane.loop(p - 1, [&] { lane.send(rotating(r + 1, 1, p), mine); });
  recv_in_rank_order(lane, request.rank, request.world, mine, scratch(fixed(0)), result);
  return {.chunks = 1, .scratch = 1, .credits = 1, .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
