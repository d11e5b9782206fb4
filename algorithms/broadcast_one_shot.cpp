// SPDX-License-Identifier: Apache-2.0
// Broadcast in one shot over memory that all ranks can read.
//
// Idea: the root shows the vector; everybody copies it straight out of the root's memory. For four ranks, root 0:
//
//   rank 0       show
//   ranks 1 2 3       copy
//
// Cost: one hop; the root writes n bytes whatever the world. Wins for small vectors within a host. Here the ranks say when they
// have read, so that slots can be used again; boards look that up when they need them.
#include "algorithms/algorithms.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan broadcast_one_shot(const Request& request) {
  const std::int32_t p = request.world.value, r = request.rank.value, root = request.root.value;
  if (p > 64) return {.refusal = "memory is shared by at most 64 ranks"};
  const Chunk whole = output(fixed(0)), shown = shared(fixed(0));

  LaneBuilder lane;
  if (p == 1) {
    lane.copy(input(fixed(0)), whole);
    return {.lanes = {lane.take()}};
  }
  if (r == root) {
    lane.copy(input(fixed(0)), shown);
    lane.loop(p - 1, [&] { lane.signal(rotating(r + 1, 1, p)); });
    lane.copy(input(fixed(0)), whole);  // while the others read
    lane.loop(p - 1, [&] { lane.wait(rotating(r + 1, 1, p)); });
  } else {
    lane.wait(fixed(root));
    lane.copy_shared(fixed(root), shown, whole);
    lane.signal(fixed(root));
  }
  return {.chunks = 1, .shared = 1, .credits = 1, .boards = Boards::one_shot, .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
