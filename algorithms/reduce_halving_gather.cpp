// SPDX-License-Identifier: Apache-2.0
// Reduce by recursive halving, then a binomial gather of the finished chunks, folding worlds that are no power of two.
//
// Idea: all ranks share the additions and the bytes, where a tree leaves half of the ranks idle after the first round. For four
// ranks, root 0 and chunks a b c d, what each rank has a partial sum of, then the finished chunks (upper case) on their way to
// the root:
//
//   rank 0   abcd  ab  A  AB  ABCD
//   rank 1   abcd  cd  C  CD
//   rank 2   abcd  ab  B
//   rank 3   abcd  cd  D
//
// Cost: 2 log2 p rounds, at most 2(p-1)/p n bytes sent a rank, (p-1)/p n added; folded: 1 more round. Wins for large vectors.
// Every element is added in the tree of recursive doubling, whatever the root. Thakur, Rabenseifner & Gropp 2005.
#include "algorithms/algorithms.h"
#include "algorithms/patterns/butterfly.h"
#include "algorithms/patterns/fold.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan reduce_halving_gather(const Request& request) {
  const Fold fold(request.world);
  const Butterfly butterfly(Butterfly::Kind::halving, fold.acting());
  const Rank r = request.rank;
  // Numbered so that the root has all bits set, which leaves the tree of additions as it is. The root acts for its pair.
  const std::int32_t root = fold.acting() - 1, flip = fold.number(request.root) ^ root;
  const std::int32_t q = fold.number(r) ^ flip;
  const auto rank_of = [&](std::int32_t number) { return number == root ? request.root : fold.rank(number ^ flip); };
  const auto whole = [&](Buffer buffer) { return window(buffer, fixed(0), fold.acting()); };
  const Buffer sums = r == request.root ? Buffer::output : Buffer::scratch;

  LaneBuilder lane;
  if (request.world.value == 1) {
    lane.copy(whole(Buffer::input), whole(Buffer::output), /*final=*/true);
  } else if (rank_of(q) != r) {
    lane.send(fixed(fold.partner(r)), whole(Buffer::input));
    return {.chunks = fold.acting(), .credits = 1, .order = Order::butterfly, .lanes = {lane.take()}};
  } else {
    const bool folded = fold.in_pair(r);
    if (folded) lane.recv_reduce(fixed(fold.partner(r)), whole(Buffer::input), whole(sums));
    butterfly_reduce_scatter(lane, butterfly, q, rank_of, folded ? sums : Buffer::input, sums);
    // Backwards through the rounds: of two that still have something, the one nearer to the root in this bit takes it all.
    for (std::int32_t k = butterfly.rounds() - 1; k >= 0 && ((q ^ root) >> (k + 1)) == 0; --k) {
      const std::int32_t peer = butterfly.partner(q, k), half = butterfly.size(k + 1);
      if ((((q ^ root) >> k) & 1) != 0)
        lane.send(fixed(rank_of(peer)), window(sums, fixed(butterfly.first(q, k + 1)), half));
      else
        lane.recv(fixed(rank_of(peer)), window(sums, fixed(butterfly.first(peer, k + 1)), half));
    }
  }
  // Slots are the chunks up to the last that this rank ever adds.
  const std::int32_t slots = fold.in_pair(r) ? fold.acting() : butterfly.first(q, 1) + butterfly.size(1);
  return {.chunks = fold.acting(),
          .scratch = sums == Buffer::scratch ? slots : 0,
          .credits = 1,
          .order = Order::butterfly,
          .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
