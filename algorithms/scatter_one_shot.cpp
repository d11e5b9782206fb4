// SPDX-License-Identifier: Apache-2.0
// Scatter in one shot over memory that all ranks can read.
//
// Idea: the root shows all blocks; everybody copies its own straight out of the root's memory. For four ranks, root 0:
//
//   rank 0       show 0 1 2 3
//   ranks 1 2 3               copy
//
// Cost: one hop; the root writes n bytes, the others read n/p. Wins for small blocks within a host. Here the ranks say when they
// have read, so that slots can be used again; boards look that up when they need them.
#include "algorithms/algorithms.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan scatter_one_shot(const Request& request) {
  const std::int32_t p = request.world.value, r = request.rank.value, root = request.root.value;
  if (p > 64) return {.refusal = "memory is shared by at most 64 ranks"};
  LaneBuilder lane;
  if (p == 1) {
    lane.copy(input(fixed(0)), output(fixed(0)));
    return {.lanes = {lane.take()}};
  }
  if (r == root) {
    lane.copy(window(Buffer::input, fixed(0), p), window(Buffer::shared, fixed(0), p));
    lane.loop(p - 1, [&] { lane.signal(rotating(r + 1, 1, p)); });
    lane.copy(input(fixed(r)), output(fixed(r)));  // while the others read
    lane.loop(p - 1, [&] { lane.wait(rotating(r + 1, 1, p)); });
  } else {
    lane.wait(fixed(root));
    lane.copy_shared(fixed(root), shared(fixed(r)), output(fixed(r)));
    lane.signal(fixed(root));
  }
  return {.chunks = 1, .shared = p, .credits = 1, .boards = Boards::one_shot, .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
