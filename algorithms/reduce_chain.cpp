// SPDX-License-Identifier: Apache-2.0
// Reduce along a chain that ends at the root, slice by slice.
//
// For four ranks and root 0:
//
//   0 < 1 < 2 < 3
//
// Cost: p-1 rounds for a slice, and slices follow each other: p-2 + n/c rounds of c bytes; n bytes sent a rank, and no memory for
// partial sums. Wins for large vectors on few ranks. The best slice is sqrt(n alpha / ((p-2) beta)) long.
#include "algorithms/algorithms.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan reduce_chain(const Request& request) {
  const Chunk mine = input(fixed(0)), result = output(fixed(0));
  const Rotating above = fixed(next(request.rank, request.world)), below = fixed(prev(request.rank, request.world));
  const bool first = request.rank == request.root, last = next(request.rank, request.world) == request.root;

  LaneBuilder lane;
  if (first && last)
    lane.copy(mine, result, /*final=*/true);
  else if (first)
    lane.recv_reduce(above, mine, result, /*final=*/true);
  else if (last)
    lane.send(below, mine);
  else
    lane.recv_reduce_send(above, mine, below);
  return {.chunks = 1, .credits = 1, .by_reference = true, .pipelined = true, .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
