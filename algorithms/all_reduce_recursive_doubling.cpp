// SPDX-License-Identifier: Apache-2.0
// All-reduce by recursive doubling, folding worlds that are no power of two.
//
// Idea: in round k each rank swaps its whole partial sum with the rank whose number differs in bit k; after log2 p rounds all
// hold the sum of all. For four ranks:
//
//   rank 0   0+1   01+23          Every rank evaluates the same tree of additions, and addition is commutative bit for
//   rank 1   0+1   01+23          bit: all end with the same bits.
//   rank 2   2+3   01+23
//   rank 3   2+3   01+23
//
// Other worlds: with p' the largest power of two below p and rem = p - p', the first rem even ranks hand their vector to the odd
// neighbour above and get the result back at the end (2 more rounds).
//
// Cost: log2 p rounds of n bytes (+2). Wins for small vectors, where rounds count and bytes do not. Thakur, Rabenseifner & Gropp
// 2005.
#include "algorithms/all_reduce_recursive_doubling.h"

#include <bit>

#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan all_reduce_recursive_doubling(World world, Rank rank) {
  const std::int32_t p = world.value, r = rank.value;
  const auto doubling = static_cast<std::int32_t>(std::bit_floor(static_cast<std::uint32_t>(p)));
  const std::int32_t rem = p - doubling;
  const Chunk mine = input(fixed(Rank{0})), result = output(fixed(Rank{0}));                   // one chunk: the whole vector
  const auto rank_of = [rem](std::int32_t q) { return Rank{q < rem ? 2 * q + 1 : q + rem}; };  // from the folded numbering

  LaneBuilder lane;
  if (p == 1) {
    lane.copy(mine, result, /*final=*/true);
  } else if (r < 2 * rem && r % 2 == 0) {
    lane.send(fixed(Rank{r + 1}), mine);
    lane.recv(fixed(Rank{r + 1}), result);
  } else {
    const bool folded = r < 2 * rem;
    if (folded) lane.recv_reduce(fixed(Rank{r - 1}), mine, result);
    const std::int32_t q = folded ? r / 2 : r - rem;
    Chunk sum = folded ? result : mine;
    for (std::int32_t bit = 1; bit < doubling; bit *= 2) {
      const Rotating partner = fixed(rank_of(q ^ bit));
      lane.send(partner, sum);
      lane.recv_reduce(partner, sum, result, /*final=*/bit * 2 == doubling);
      sum = result;
    }
    if (folded) lane.send(fixed(Rank{r - 1}), result);
  }
  return {.algorithm = "recursive_doubling",
          .collective = Collective::all_reduce,
          .world = world,
          .rank = rank,
          .chunks = 1,
          .credits = 1,
          .by_reference = false,
          .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
