// SPDX-License-Identifier: Apache-2.0
// Reduce-scatter around a ring.
//
// Idea: the partial sum of each block goes once around the ring and ends with its owner. For four ranks with blocks a b c d, what
// each sends in each round:
//
//   rank 0   d  c  b
//   rank 1   a  d  c
//   rank 2   b  a  d
//   rank 3   c  b  a
//
// Cost: p-1 rounds, (p-1)/p n bytes sent a rank and as many added (the least possible), to a neighbour only. Wins for long
// blocks. Block b is summed in the order of ranks b+1, b+2, ..., b. Patarasuk & Yuan 2009. Two credits: a rank holds the arriving
// message while it waits for room to send on, and all ranks do so at once.
#include "algorithms/algorithms.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan reduce_scatter_ring(const Request& request) {
  const std::int32_t p = request.world.value, r = request.rank.value;
  const Rotating to = fixed(next(request.rank, request.world)), from = fixed(prev(request.rank, request.world));

  LaneBuilder lane;
  if (p == 1) {
    lane.copy(input(fixed(0)), output(fixed(0)), /*final=*/true);
  } else {
    lane.send(to, input(rotating(r - 1, 0, p)));
    lane.loop(p - 2, [&] { lane.recv_reduce_send(from, input(rotating(r - 2, -1, p)), to); });
    lane.recv_reduce(from, input(fixed(r)), output(fixed(r)), /*final=*/true);
  }
  return {.chunks = 1, .credits = p > 2 ? 2 : 1, .by_reference = true, .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
