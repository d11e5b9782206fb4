// SPDX-License-Identifier: Apache-2.0
// All-reduce through one server, rank 0.
//
// Idea: the workers push their vectors to the server, which adds them in the order of ranks; then they pull the sum. For four
// ranks:
//
//   push   1,2,3 > 0       pull   0 > 1,2,3
//
// Cost: 2 rounds; a worker sends and receives n bytes, the server (p-1)n each way through one port. Wins for small vectors, and
// is what the sharded form improves on. Li et al., "Scaling distributed machine learning with the parameter server" 2014.
#include "algorithms/algorithms.h"
#include "algorithms/patterns/rank_order.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan all_reduce_parameter_server(const Request& request) {
  const std::int32_t p = request.world.value;
  const Rank server{0};
  const Chunk mine = input(fixed(0)), result = output(fixed(0));

  LaneBuilder lane;
  if (p == 1) {
    lane.copy(mine, result, /*final=*/true);
  } else if (request.rank == server) {
    recv_in_rank_order(lane, server, request.world, mine, {}, result);  // no rank is below: no partial sums
    lane.loop(p - 1, [&] { lane.send(rotating(1, 1, p), result); });
  } else {
    lane.send(fixed(server), mine);
    lane.recv(fixed(server), result);
  }
  return {.chunks = 1, .credits = 1, .by_reference = true, .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
