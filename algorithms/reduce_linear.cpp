// SPDX-License-Identifier: Apache-2.0
// Reduce straight to the root, which adds in the order of ranks.
//
// For four ranks and root 0:
//
//   1,2,3 > 0
//
// Cost: 1 round; n bytes sent a rank, (p-1)n received by the root through one port. Senders run ahead only as far as their own
// link holds. Wins for tiny vectors and few ranks; the sum does not depend on the root.
#include "algorithms/algorithms.h"
#include "algorithms/patterns/rank_order.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan reduce_linear(const Request& request) {
  const Chunk mine = input(fixed(0)), result = output(fixed(0));
  const bool at_root = request.rank == request.root;

  LaneBuilder lane;
  if (request.world.value == 1)
    lane.copy(mine, result, /*final=*/true);
  else if (at_root)
    recv_in_rank_order(lane, request.rank, request.world, mine, scratch(fixed(0)), result);
  else
    lane.send(fixed(request.root), mine);
  const bool below = at_root && request.rank.value > 0;
  return {.chunks = 1, .scratch = below ? 1 : 0, .credits = 1, .by_reference = true, .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
