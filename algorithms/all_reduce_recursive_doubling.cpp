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
#include "algorithms/algorithms.h"
#include "algorithms/patterns/fold.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan all_reduce_recursive_doubling(const Request& request) {
  const Fold fold(request.world);
  const Rank r = request.rank;
  const Chunk mine = input(fixed(0)), result = output(fixed(0));  // one chunk: the whole vector
  const Rotating neighbour = fixed(fold.partner(r));

  LaneBuilder lane;
  if (request.world.value == 1) {
    lane.copy(mine, result, /*final=*/true);
  } else if (fold.idles(r)) {
    lane.send(neighbour, mine);
    lane.recv(neighbour, result);
  } else {
    const bool folded = fold.in_pair(r);
    if (folded) lane.recv_reduce(neighbour, mine, result);
    Chunk sum = folded ? result : mine;
    for (std::int32_t bit = 1; bit < fold.acting(); bit *= 2) {
      const Rotating partner = fixed(fold.rank(fold.number(r) ^ bit));
      lane.send(partner, sum);
      lane.recv_reduce(partner, sum, result, /*final=*/bit * 2 == fold.acting());
      sum = result;
    }
    if (folded) lane.send(neighbour, result);
  }
  return {.chunks = 1, .credits = 1, .order = Order::butterfly, .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
