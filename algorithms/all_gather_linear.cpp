// SPDX-License-Identifier: Apache-2.0
// All-gather in one round; also for blocks of different lengths.
//
// Idea: every rank sends its block straight to every other. For four ranks with blocks a b c d:
//
//   rank 0   a->1  a->2  a->3
//   rank 1   b->2  b->3  b->0        each starts with the rank above, so that no rank is everybody's first
//   rank 2   c->3  c->0  c->1
//   rank 3   d->0  d->1  d->2
//
// Cost: 1 round of p-1 messages, (p-1)/p n bytes sent a rank. Wins for short blocks on few ranks with a link between any two.
#include "algorithms/algorithms.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan all_gather_linear(const Request& request) {
  const std::int32_t p = request.world.value, r = request.rank.value;
  const Rotating above = rotating(r + 1, 1, p), below = rotating(r - 1, -1, p);

  LaneBuilder lane;
  lane.loop(p - 1, [&] { lane.send(above, input(fixed(r))); });
  lane.copy(input(fixed(r)), output(fixed(r)));
  lane.loop(p - 1, [&] { lane.recv(below, output(below)); });
  return {.chunks = 1, .credits = 1, .by_reference = true, .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
