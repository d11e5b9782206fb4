// SPDX-License-Identifier: Apache-2.0
// All-reduce by recursive halving and doubling for any world, by 3-2 elimination: no rank idles while others fold.
//
// Idea: as halving and doubling, but where an odd number of ranks shares a segment, three of them halve it together in two
// exchanges, and one of the three is out until the segment comes back. For three ranks and halves a b:
//
//   1 and 2 swap:      rank 1 has a of 1+2, rank 2 has b of 1+2
//   2 > 0 b, 0 > 1 a:  rank 1 has A, rank 0 has B, rank 2 is out
//   back:              0 and 1 swap, 1 > 2 A, 0 > 2 B
//
// Cost: in powers of two that of halving and doubling. Else, for the first half, at most (rounds, bytes received by a rank):
// p=3: 2, n; p=5: 3, 1.25n; p=6: 3, n; p=7: 3, 1.25n; p=12: 4, n. Folding takes 1.5n and more, and n more on the way back. Wins
// for medium and large vectors in worlds that are no power of two. Rabenseifner & Traeff 2004.
#include <bit>

#include "algorithms/algorithms.h"
#include "algorithms/patterns/elimination.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

namespace {

// Sums of the rank's half of each round's segment. The first round reads the input, all later ones what the output holds.
void reduce_scatter(LaneBuilder& lane, const std::vector<Halving>& rounds) {
  using Role = Halving::Role;
  Buffer sums = Buffer::input;
  for (const Halving& round : rounds) {
    const auto lower = [&](Buffer buffer) { return window(buffer, fixed(round.first), round.half); };
    const auto upper = [&](Buffer buffer) { return window(buffer, fixed(round.first + round.half), round.half); };
    const Rotating partner = fixed(round.partner);
    const Rotating t0 = fixed(round.triple[0]), t1 = fixed(round.triple[1]), t2 = fixed(round.triple[2]);
    switch (round.role) {
      case Role::lower:
        lane.send(partner, upper(sums));
        lane.recv_reduce(partner, lower(sums), lower(Buffer::output), round.finishes);
        break;
      case Role::upper:
        lane.send(partner, lower(sums));
        lane.recv_reduce(partner, upper(sums), upper(Buffer::output), round.finishes);
        break;
      case Role::triple_upper:
        lane.send(t1, lower(sums));
        lane.recv_reduce(t2, upper(sums), upper(Buffer::output), round.finishes);
        break;
      case Role::triple_lower:
        lane.send(t2, upper(sums));
        lane.recv_reduce(t2, lower(sums), lower(Buffer::output));
        lane.recv_reduce(t0, lower(Buffer::output), lower(Buffer::output), round.finishes);
        break;
      case Role::triple_out:
        lane.send(t1, lower(sums));
        lane.recv_reduce_send(t1, upper(sums), t0);
        break;
    }
    sums = Buffer::output;
  }
}

// The same backwards: halves are swapped, and who was out gets both.
void all_gather(LaneBuilder& lane, const std::vector<Halving>& rounds) {
  using Role = Halving::Role;
  for (auto round = rounds.rbegin(); round != rounds.rend(); ++round) {
    const Chunk lower = window(Buffer::output, fixed(round->first), round->half);
    const Chunk upper = window(Buffer::output, fixed(round->first + round->half), round->half);
    const Rotating partner = fixed(round->partner);
    const Rotating t0 = fixed(round->triple[0]), t1 = fixed(round->triple[1]), t2 = fixed(round->triple[2]);
    switch (round->role) {
      case Role::lower:
        lane.send(partner, lower);
        lane.recv(partner, upper);
        break;
      case Role::upper:
        lane.send(partner, upper);
        lane.recv(partner, lower);
        break;
      case Role::triple_upper:
        lane.send(t1, upper);
        lane.send(t2, upper);
        lane.recv(t1, lower);
        break;
      case Role::triple_lower:
        lane.send(t0, lower);
        lane.send(t2, lower);
        lane.recv(t0, upper);
        break;
      case Role::triple_out:
        lane.recv(t1, lower);
        lane.recv(t0, upper);
        break;
    }
  }
}

}  // namespace

Plan all_reduce_halving_doubling_32(const Request& request) {
  const std::int32_t p = request.world.value;
  const std::vector<Halving> rounds = halvings(p, request.rank.value);

  LaneBuilder lane;
  if (p == 1) lane.copy(input(fixed(0)), output(fixed(0)), /*final=*/true);
  reduce_scatter(lane, rounds);
  all_gather(lane, rounds);
  const auto chunks = static_cast<std::int32_t>(std::bit_floor(static_cast<std::uint32_t>(p)));
  const bool halving = chunks == p;  // without a triple, as halving and doubling
  return {.chunks = chunks,
          .credits = 1,
          .by_reference = halving,
          .order = halving ? Order::butterfly : Order::any,
          .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
