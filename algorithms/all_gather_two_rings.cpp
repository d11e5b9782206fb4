// SPDX-License-Identifier: Apache-2.0
// All-gather around two rings in opposite directions.
//
// Idea: as in one ring, but each block goes both ways and stops half-way round: half of the p-1 blocks come from each side. For
// four ranks with blocks a b c d, what each rank sends up and down in each round:
//
//            up      down
//   rank 0   a  d    a
//   rank 1   b  a    b
//   rank 2   c  b    c
//   rank 3   d  c    d
//
// Cost: ceil((p-1)/2) rounds, (p-1)/p n bytes sent a rank, over two neighbours' links. Wins for long blocks where links work both
// ways at once and the message rate, not the rank's own speed, is what a ring waits for.
// Two credits from four ranks on, as in one ring. In place the copy changes nothing, so that both lanes may read the input.
#include "algorithms/algorithms.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan all_gather_two_rings(const Request& request) {
  const std::int32_t p = request.world.value, r = request.rank.value;
  const Rotating above = fixed(next(request.rank, request.world)), below = fixed(prev(request.rank, request.world));
  const Chunk mine = input(fixed(r));

  // Blocks r + step, r + 2 step, ... arrive from that side; what arrives last is not passed on.
  const auto half = [&](LaneBuilder& lane, std::int32_t rounds, std::int32_t step, Rotating from, Rotating to) {
    if (rounds == 0) return;
    lane.send(to, mine);
    lane.loop(rounds - 1, [&] { lane.recv_copy_send(from, output(rotating(r + step, step, p)), to); });
    lane.recv(from, output(rotating(r + step * rounds, 0, p)));
  };
  LaneBuilder up, down;
  half(up, p / 2, -1, below, above);
  half(down, (p - 1) / 2, 1, above, below);
  up.copy(mine, output(fixed(r)));
  Plan plan{.chunks = 1, .credits = p > 3 ? 2 : 1, .by_reference = true};
  plan.lanes.push_back(up.take(0));
  if (p > 2) plan.lanes.push_back(down.take(1));
  return plan;
}

}  // namespace shoal::algorithms
