// SPDX-License-Identifier: Apache-2.0
// All-reduce over a ring that passes whole vectors.
//
// Idea: every vector goes once around the ring, and each rank adds all it has seen. The textbook's form adds on arrival, so that
// each rank adds in another order and floating-point sums differ; here the vectors are kept, and all ranks add them in the order
// of ranks. For four ranks with vectors a b c d, what each sends in each round:
//
//   rank 0   a  d  c
//   rank 1   b  a  d
//   rank 2   c  b  a
//   rank 3   d  c  b      then a+b+c+d everywhere
//
// Cost: p-1 rounds, (p-1)n bytes sent a rank, (p-1)n added, and memory for p vectors: half of the ring's rounds at p/2 times its
// bytes. It shows what chunks are good for; it wins for tiny vectors where only neighbours are linked.
#include "algorithms/algorithms.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan all_reduce_whole_ring(const Request& request) {
  const std::int32_t p = request.world.value, r = request.rank.value;
  const Rotating to = fixed(next(request.rank, request.world)), from = fixed(prev(request.rank, request.world));
  const Chunk mine = input(fixed(0)), result = output(fixed(0));  // one chunk: the whole vector
  const auto slot = [p](std::int32_t rank, std::int32_t stride = 0) { return scratch(rotating(rank, stride, p)); };

  LaneBuilder lane;
  if (p == 1) {
    lane.copy(mine, result, /*final=*/true);
    return {.lanes = {lane.take()}};
  }
  lane.copy(mine, slot(r));
  lane.send(to, slot(r));
  lane.loop(p - 2, [&] { lane.recv_copy_send(from, slot(r - 1, -1), to); });
  lane.recv(from, slot(r + 1));
  lane.copy(slot(0), result);
  lane.loop(p - 2, [&] { lane.reduce(slot(1, 1), result); });
  lane.reduce(slot(p - 1), result, /*final=*/true);
  return {.chunks = 1, .scratch = p, .credits = p > 2 ? 2 : 1, .by_reference = p > 2, .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
