// SPDX-License-Identifier: Apache-2.0
// Broadcast down a chain.
//
// Idea: the root sends to the next rank, which keeps the vector and passes it on while the next slice arrives. For four ranks and
// root 0, slices a b c, what each rank sends in each round:
//
//   rank 0   a  b  c
//   rank 1      a  b  c
//   rank 2         a  b  c        rank 3 only receives
//
// Cost: p-2+k rounds of n/k bytes with k slices; every rank sends n bytes at most, the least possible. Wins for long vectors on
// few ranks. The best slice is sqrt(n alpha / ((p-2) beta)) bytes.
#include "algorithms/algorithms.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan broadcast_chain(const Request& request) {
  const Rank to = next(request.rank, request.world), from = prev(request.rank, request.world);
  const Rotating whole = fixed(Rank{0});

  LaneBuilder lane;
  if (request.rank == request.root) {
    if (to != request.root) lane.send(fixed(to), input(whole));
    lane.copy(input(whole), output(whole));
  } else if (to != request.root) {
    lane.recv_copy_send(fixed(from), output(whole), fixed(to));
  } else {
    lane.recv(fixed(from), output(whole));
  }
  return {.chunks = 1, .credits = 1, .by_reference = true, .pipelined = true, .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
