// SPDX-License-Identifier: Apache-2.0
// All-gather around a ring; also for blocks of different lengths.
//
// Idea: each rank sends its block to the next rank, then passes on what arrives from the previous one. For four ranks with blocks
// a b c d, what each sends in each round:
//
//   rank 0   a  d  c
//   rank 1   b  a  d
//   rank 2   c  b  a
//   rank 3   d  c  b
//
// Cost: p-1 rounds, (p-1)/p n bytes sent a rank (the least possible), to a neighbour only. Wins for long blocks. Thakur,
// Rabenseifner & Gropp 2005. Two credits: a rank holds the arriving message while it waits for room to send on, and all ranks do
// so at once.
#include "algorithms/algorithms.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan all_gather_ring(const Request& request) {
  const std::int32_t p = request.world.value, r = request.rank.value;
  const Rotating to = fixed(next(request.rank, request.world)), from = fixed(prev(request.rank, request.world));

  LaneBuilder lane;
  if (p > 1) lane.send(to, input(fixed(r)));
  lane.copy(input(fixed(r)), output(fixed(r)));
  if (p > 1) {
    lane.loop(p - 2, [&] { lane.recv_copy_send(from, output(rotating(r - 1, -1, p)), to); });
    lane.recv(from, output(rotating(r + 1, 0, p)));
  }
  return {.chunks = 1, .credits = p > 2 ? 2 : 1, .by_reference = true, .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
