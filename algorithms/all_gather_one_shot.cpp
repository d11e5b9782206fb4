// SPDX-License-Identifier: Apache-2.0
// All-gather over memory that all ranks can read.
//
// Idea: everybody shows its block and tells the others; then each rank copies the p-1 other blocks straight out of their memory.
// For four ranks:
//
//   rank 0   show 0 | copy 1 2 3
//   rank 1   show 1 | copy 2 3 0
//   rank 2   show 2 | copy 3 0 1
//   rank 3   show 3 | copy 0 1 2
//
// Cost: 1 round of signals; each rank writes n/p bytes and reads (p-1)/p n, where links would have every byte written once for
// each reader. Wins within a host. All start with the next rank's block, so that no two read the same memory at once. Two sets of
// slots take turns, so that the next run does not overwrite what a slow rank still reads.
#include "algorithms/algorithms.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan all_gather_one_shot(const Request& request) {
  const std::int32_t p = request.world.value, r = request.rank.value;
  if (p > 64) return {.refusal = "memory is shared by at most 64 ranks"};
  const Chunk mine = input(fixed(r)), shown = shared(fixed(0));

  LaneBuilder lane;
  if (p == 1) {
    lane.copy(mine, output(fixed(0)));
    return {.lanes = {lane.take()}};
  }
  lane.copy(mine, shown);
  lane.loop(p - 1, [&] { lane.signal(rotating(r + 1, 1, p)); });
  lane.copy(mine, output(fixed(r)));  // while the others get there
  lane.loop(p - 1, [&] { lane.wait(rotating(r - 1, -1, p)); });
  const Rotating above = rotating(r + 1, 1, p);
  lane.loop(p - 1, [&] { lane.copy_shared(above, shown, output(above)); });
  return {.chunks = 1, .shared = 1, .credits = 1, .boards = Boards::one_shot, .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
