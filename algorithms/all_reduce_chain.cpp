// SPDX-License-Identifier: Apache-2.0
// All-reduce along a chain: sums go down it to rank 0, the result comes back, slice by slice.
//
// For four ranks:
//
//   0 < 1 < 2 < 3      then      0 > 1 > 2 > 3
//
// Cost: 2(p-1) rounds for a slice, and slices follow each other both ways at once; at most 2n bytes sent a rank, n each way.
// Needs only neighbours, and no link between the ends. Wins for large vectors on few ranks in a line. Slices that are best are
// about sqrt(n alpha / (p beta)) long.
#include "algorithms/algorithms.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan all_reduce_chain(const Request& request) {
  const std::int32_t p = request.world.value, r = request.rank.value;
  const Chunk mine = input(fixed(0)), result = output(fixed(0));
  const Rotating below = fixed(r - 1), above = fixed(r + 1);

  LaneBuilder up, down;  // towards rank 0, away from it
  if (p == 1) {
    up.copy(mine, result, /*final=*/true);
  } else if (r == 0) {
    up.recv_reduce_copy_send(above, mine, result, above, /*final=*/true);
  } else if (r == p - 1) {
    up.send(below, mine);
    down.recv(below, result);
  } else {
    up.recv_reduce_send(above, mine, below);
    down.recv_copy_send(below, result, above);
  }
  Plan plan{.chunks = 1, .credits = 1, .by_reference = true, .pipelined = true};
  plan.lanes.push_back(up.take());
  if (r != 0) plan.lanes.push_back(down.take());
  return plan;
}

}  // namespace shoal::algorithms
