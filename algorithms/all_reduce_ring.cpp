// SPDX-License-Identifier: Apache-2.0
// All-reduce over a ring: reduce-scatter, then all-gather.
//
// Idea: the vector is cut into p chunks. In p-1 rounds each partial sum moves one rank on and collects that rank's share; then
// rank r holds the finished chunk r, and p-1 more rounds carry the finished chunks around. For four ranks, which chunk each rank
// sends in each round (lower case: partial sum, upper case: finished, chunks a b c d):
//
//             reduce-scatter   all-gather
//   rank 0      d  c  b        A  D  C
//   rank 1      a  d  c        B  A  D
//   rank 2      b  a  d        C  B  A
//   rank 3      c  b  a        D  C  B
//
// Cost: 2(p-1) rounds, 2(p-1)/p n bytes sent a rank (the least possible), (p-1)/p n bytes reduced. Patarasuk & Yuan 2009.
// Two credits: a rank holds the arriving message while it waits for room to send on, and all ranks do so at once.
// Wins for large vectors, where bytes count and rounds do not. Chunk c is summed in the order of ranks c+1, c+2, ..., c.
#include "algorithms/algorithms.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan all_reduce_ring(const Request& request) {
  const std::int32_t p = request.world.value, r = request.rank.value;
  const Rotating to = fixed(next(request.rank, request.world)), from = fixed(prev(request.rank, request.world));
  const auto chunk = [p](std::int32_t start, std::int32_t stride = 0) { return rotating(start, stride, p); };

  LaneBuilder lane;
  if (p == 1) {
    lane.copy(input(chunk(0)), output(chunk(0)), /*final=*/true);
  } else {
    // Reduce-scatter: the sum of chunk r-2-i arrives, gains this rank's share and goes on.
    lane.send(to, input(chunk(r - 1)));
    lane.loop(p - 2, [&] { lane.recv_reduce_send(from, input(chunk(r - 2, -1)), to); });
    // Chunk r is complete here. All-gather: pass it on, then whatever else is complete.
    lane.recv_reduce_copy_send(from, input(chunk(r)), output(chunk(r)), to, /*final=*/true);
    lane.loop(p - 2, [&] { lane.recv_copy_send(from, output(chunk(r - 1, -1)), to); });
    lane.recv(from, output(chunk(r + 1)));
  }
  return {.chunks = p, .credits = 2, .by_reference = true, .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
