// SPDX-License-Identifier: Apache-2.0
// Reduce in one shot over memory that all ranks can read.
//
// Idea: everybody shows the vector and tells the root, which adds all p vectors straight out of the others' memory, in the order
// of ranks. For four ranks, root 0:
//
//   show | 0+1+2+3 on rank 0
//
// Cost: 1 round of signals; the root reads pn bytes and adds (p-1)n. Wins for small vectors within a host. Here the root says
// when it has read, so that slots can be used again; boards look that up when they need them.
#include "algorithms/algorithms.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan reduce_one_shot(const Request& request) {
  const std::int32_t p = request.world.value, r = request.rank.value, root = request.root.value;
  if (p > 64) return {.refusal = "memory is shared by at most 64 ranks"};
  const Chunk mine = input(fixed(0)), result = output(fixed(0)), shown = shared(fixed(0));

  LaneBuilder lane;
  if (p == 1) {
    lane.copy(mine, result, /*final=*/true);
    return {.lanes = {lane.take()}};
  }
  lane.copy(mine, shown);
  if (r == root) {
    lane.loop(p - 1, [&] { lane.wait(rotating(r + 1, 1, p)); });
    lane.reduce_shared(shown, result, /*final=*/true);
    lane.loop(p - 1, [&] { lane.signal(rotating(r + 1, 1, p)); });
  } else {
    lane.signal(fixed(root));
    lane.wait(fixed(root));
  }
  return {.chunks = 1, .shared = 1, .credits = 1, .boards = Boards::one_shot, .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
