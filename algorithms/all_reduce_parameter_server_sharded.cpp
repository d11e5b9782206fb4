// SPDX-License-Identifier: Apache-2.0
// All-reduce through servers that share the vector: every rank serves one chunk.
//
// Idea: each rank pushes every chunk straight to its server, which adds in the order of ranks, and pulls the sums from all. Chunk
// c is served by rank c+1. Rank r starts with the server above it, so that none is flooded while others idle. For four ranks and
// chunks a b c d, what each sends:
//
//             push (to its server)   pull (to each worker)
//   rank 0    a b c                  D D D
//   rank 1    b c d                  A A A
//   rank 2    c d a                  B B B
//   rank 3    d a b                  C C C
//
// Cost: 2 rounds, 2(p-1)/p n bytes sent a rank, (p-1)/p n added: the least bytes and the fewest rounds, over p-1 links a rank.
// Wins for medium vectors wherever every pair of ranks has a link of its own. Also known as two-shot or direct all-reduce.
#include "algorithms/algorithms.h"
#include "algorithms/patterns/rank_order.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan all_reduce_parameter_server_sharded(const Request& request) {
  const std::int32_t p = request.world.value, r = request.rank.value;

  LaneBuilder lane;
  if (p == 1) {
    lane.copy(input(fixed(0)), output(fixed(0)), /*final=*/true);
    return {.lanes = {lane.take()}};
  }
  const Rotating above = rotating(r + 1, 1, p), below = rotating(r - 1, -1, p);
  const Rotating theirs = rotating(r, 1, p), mine = rotating(r - 1, 0, p);  // the chunks of `above`, and this rank's
  lane.loop(p - 1, [&] { lane.send(above, input(theirs)); });
  recv_in_rank_order(lane, request.rank, request.world, input(mine), scratch(mine), output(mine));
  lane.loop(p - 1, [&] { lane.send(below, output(mine)); });
  lane.loop(p - 1, [&] { lane.recv(above, output(theirs)); });
  // Rank 0 needs no memory for partial sums; chunk r-1 of the others fits into slot r-1.
  return {.chunks = p, .scratch = r, .credits = 1, .by_reference = true, .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
