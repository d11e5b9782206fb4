// SPDX-License-Identifier: Apache-2.0
// Gather in one shot over memory that all ranks can read.
//
// Idea: everybody shows its block and tells the root, which copies all blocks straight out of the others' memory. For four ranks,
// root 0:
//
//   ranks 1 2 3  show
//   rank 0            copy 1 2 3
//
// Cost: one hop; the root reads (p-1)/p n bytes, the others write n/p. Wins for small blocks within a host. Here the root says
// when it has read, so that slots can be used again; boards look that up when they need them.
#include "algorithms/algorithms.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan gather_one_shot(const Request& request) {
  const std::int32_t p = request.world.value, r = request.rank.value, root = request.root.value;
  if (p > 64) return {.refusal = "memory is shared by at most 64 ranks"};
  const Chunk mine = input(fixed(r)), shown = shared(fixed(0));

  LaneBuilder lane;
  if (r == root) lane.copy(mine, output(fixed(r)));
  if (p == 1) return {.lanes = {lane.take()}};
  if (r == root) {
    const Rotating above = rotating(r + 1, 1, p);
    lane.loop(p - 1, [&] {
      lane.wait(above);
      lane.copy_shared(above, shown, output(above));
      lane.signal(above);
    });
  } else {
    lane.copy(mine, shown);
    lane.signal(fixed(root));
    lane.wait(fixed(root));
  }
  return {.chunks = 1, .shared = 1, .credits = 1, .boards = Boards::one_shot, .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
