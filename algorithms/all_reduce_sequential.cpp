// SPDX-License-Identifier: Apache-2.0
// All-reduce as p reductions one after the other, each to another root.
//
// Idea: in round i all ranks send their vectors to rank i, which adds them in the order of ranks; the next round starts when rank
// i has told all others that it is done. For four ranks, who sends to whom:
//
//   round 0   1,2,3 > 0       round 1   0,2,3 > 1       round 2   0,1,3 > 2       round 3   0,1,2 > 3
//
// Cost: p rounds, (p-1)n bytes sent a rank and (p-1)n received by the root of a round, at once: time grows with p^2. The
// textbook's worst case, here to compare with; it never wins.
#include "algorithms/algorithms.h"
#include "algorithms/patterns/rank_order.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan all_reduce_sequential(const Request& request) {
  const std::int32_t p = request.world.value, r = request.rank.value;
  const Chunk mine = input(fixed(0)), result = output(fixed(0));
  const Chunk partial = scratch(fixed(0)), kept = scratch(fixed(1));  // `kept`: the input, which the result may overwrite

  LaneBuilder lane;
  if (p == 1) {
    lane.copy(mine, result, /*final=*/true);
    return {.lanes = {lane.take()}};
  }
  const auto take_part = [&](std::int32_t first, std::int32_t end, Chunk vector) {
    lane.loop(end - first, [&] {
      lane.send(rotating(first, 1, p), vector);
      lane.wait(rotating(first, 1, p));
    });
  };
  take_part(0, r, mine);
  if (r < p - 1) lane.copy(mine, kept);
  recv_in_rank_order(lane, request.rank, request.world, mine, partial, result);
  lane.loop(p - 1, [&] { lane.signal(rotating(r + 1, 1, p)); });
  take_part(r + 1, p, kept);
  return {.chunks = 1, .scratch = 2, .credits = 1, .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
