// SPDX-License-Identifier: Apache-2.0
// All-reduce by recursive halving and doubling (Rabenseifner), folding worlds that are no power of two.
//
// Idea: a reduce-scatter whose messages halve from round to round, between ranks 1, 2, 4, ... apart, then its mirror. For four
// ranks and chunks a b c d, what each rank has a partial sum of, then the finished chunks (upper case) of each:
//
//   rank 0   abcd  ab  A  AB  ABCD
//   rank 1   abcd  cd  C  CD  ABCD
//   rank 2   abcd  ab  B  AB  ABCD
//   rank 3   abcd  cd  D  CD  ABCD
//
// Cost: 2 log2 p rounds, 2(p-1)/p n bytes sent a rank, (p-1)/p n added; folded: 2 more rounds of n bytes. Wins for medium and
// large vectors in worlds that are powers of two. Every element is added in the tree of recursive doubling. Thakur, Rabenseifner
// & Gropp 2005.
#include "algorithms/algorithms.h"
#include "algorithms/patterns/butterfly.h"

namespace shoal::algorithms {

plan::Plan all_reduce_halving_doubling(const plan::Request& request) {
  return butterfly_all_reduce(request, Butterfly::Kind::halving);
}

}  // namespace shoal::algorithms
