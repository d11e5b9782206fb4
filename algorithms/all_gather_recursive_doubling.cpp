// SPDX-License-Identifier: Apache-2.0
// All-gather by recursive doubling, folding worlds that are no power of two.
//
// Idea: in round k each rank swaps all that it has with the rank whose number differs in bit k, which doubles it. For four ranks
// with blocks a b c d, what each rank has:
//
//   rank 0   a   ab   abcd
//   rank 1   b   ab   abcd
//   rank 2   c   cd   abcd
//   rank 3   d   cd   abcd
//
// Other worlds: with p' the largest power of two below p and rem = p - p', the first rem even ranks hand their block to the odd
// neighbour above, which acts for both, and get the other p-1 at the end. What a rank has stays one window of blocks.
//
// Cost: log2 p rounds, (p-1)/p n bytes sent a rank; folded: 2 more rounds, and up to another n bytes sent by the odd neighbour.
// Wins for short blocks in worlds that are powers of two. Thakur, Rabenseifner & Gropp 2005.
#include <bit>

#include "algorithms/algorithms.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan all_gather_recursive_doubling(const Request& request) {
  const std::int32_t p = request.world.value, r = request.rank.value;
  const auto doubling = static_cast<std::int32_t>(std::bit_floor(static_cast<std::uint32_t>(p)));
  const std::int32_t rem = p - doubling;
  // From the folded numbering: the rank that acts, and the first of the ranks for which it acts.
  const auto rank_of = [rem](std::int32_t q) { return Rank{q < rem ? 2 * q + 1 : q + rem}; };
  const auto first_of = [rem](std::int32_t q) { return q < rem ? 2 * q : q + rem; };
  // What folded ranks [q, q + n) bring.
  const auto blocks = [&](std::int32_t q, std::int32_t n) {
    return window(Buffer::output, fixed(first_of(q)), first_of(q + n) - first_of(q));
  };

  LaneBuilder lane;
  lane.copy(input(fixed(r)), output(fixed(r)));
  if (r < 2 * rem && r % 2 == 0) {
    lane.send(fixed(Rank{r + 1}), output(fixed(r)));
    lane.recv(fixed(Rank{r + 1}), window(Buffer::output, fixed(r + 1), p - 1, p));
  } else {
    const bool folded = r < 2 * rem;
    if (folded) lane.recv(fixed(Rank{r - 1}), output(fixed(r - 1)));
    const std::int32_t q = folded ? r / 2 : r - rem;
    for (std::int32_t bit = 1; bit < doubling; bit *= 2) {
      const std::int32_t mine = q & ~(bit - 1);
      const Rotating partner = fixed(rank_of(q ^ bit));
      lane.send(partner, blocks(mine, bit));
      lane.recv(partner, blocks(mine ^ bit, bit));
    }
    if (folded) lane.send(fixed(Rank{r - 1}), window(Buffer::output, fixed(r), p - 1, p));
  }
  return {.chunks = 1, .credits = 1, .by_reference = true, .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
