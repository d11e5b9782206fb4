// SPDX-License-Identifier: Apache-2.0
// All-reduce in one shot over memory that all ranks can read.
//
// Idea: everybody shows the vector and tells the others; then each rank adds all p vectors straight out of the others' memory, in
// the order of ranks, so that all get the same bits. For four ranks:
//
//   show | 0+1+2+3 on each rank
//
// Cost: 1 round of signals; each rank reads pn bytes and adds (p-1)n. Wins for small vectors within a host: the fewest waits
// there are. Two sets of slots take turns, so that the next run does not overwrite what a slow rank still reads.
#include "algorithms/algorithms.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan all_reduce_one_shot(const Request& request) {
  const std::int32_t p = request.world.value, r = request.rank.value;
  if (p > 64) return {.refusal = "memory is shared by at most 64 ranks"};
  const Chunk mine = input(fixed(0)), result = output(fixed(0)), shown = shared(fixed(0));

  LaneBuilder lane;
  if (p == 1) {
    lane.copy(mine, result, /*final=*/true);
    return {.lanes = {lane.take()}};
  }
  lane.copy(mine, shown);
  lane.loop(p - 1, [&] { lane.signal(rotating(r + 1, 1, p)); });
  lane.loop(p - 1, [&] { lane.wait(rotating(r - 1, -1, p)); });
  lane.reduce_shared(shown, result, /*final=*/true);
  return {.chunks = 1, .shared = 1, .credits = 1, .boards = Boards::one_shot, .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
