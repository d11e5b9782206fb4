// SPDX-License-Identifier: Apache-2.0
// All-to-all by pairwise exchange; also for blocks of different lengths.
//
// Idea: in round i each rank sends to the rank i above and receives from the rank i below, so that every rank sends one block and
// receives one. For four ranks, to whom each rank sends in each round:
//
//   rank 0   1  2  3
//   rank 1   2  3  0
//   rank 2   3  0  1
//   rank 3   0  1  2
//
// Cost: p-1 rounds, (p-1)/p n bytes sent a rank (the least possible), one message on each link. Wins for long blocks. Thakur,
// Rabenseifner & Gropp 2005; where p is a power of two they pair r with r xor i, at the same cost.
#include "algorithms/algorithms.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan all_to_all_pairwise(const Request& request) {
  const std::int32_t p = request.world.value, r = request.rank.value;
  const Rotating above = rotating(r + 1, 1, p), below = rotating(r - 1, -1, p);

  LaneBuilder lane;
  lane.copy(input(fixed(r)), output(fixed(r)));
  lane.loop(p - 1, [&] {
    lane.send(above, input(above));
    lane.recv(below, output(below));
  });
  return {.chunks = 1, .credits = 1, .by_reference = true, .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
