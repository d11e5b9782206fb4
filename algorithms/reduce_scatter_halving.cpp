// SPDX-License-Identifier: Apache-2.0
// Reduce-scatter by recursive halving, folding worlds that are no power of two.
//
// Idea: in round k a rank swaps with the one whose number differs in bit k: each keeps the blocks of the ranks that agree with it
// in the bits so far, so that its own is left in the end. For four ranks and blocks a b c d, what each has partial sums of:
//
//   rank 0   abcd  ac  A
//   rank 1   abcd  bd  B
//   rank 2   abcd  ac  C
//   rank 3   abcd  bd  D
//
// Other worlds: with p' the largest power of two below p and rem = p - p', the first rem even ranks hand their vector to the odd
// neighbour above, which acts for both and hands back the even rank's block. The blocks of the pairs and those of the single
// ranks are two evenly spaced sets, hence two messages a round.
//
// Cost: log2 p rounds, (p-1)/p n bytes sent a rank and as many added; folded: 2 more rounds, with n bytes. Wins for short and
// medium blocks in worlds that are powers of two. Every element is added in the tree of recursive doubling. Thakur, Rabenseifner
// & Gropp 2005.
#include "algorithms/algorithms.h"
#include "algorithms/patterns/fold.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

namespace {

// The blocks of the pairs (singles: of the single ranks) whose numbers are c, c + stride, ...; size 0 if there are none.
Chunk blocks_of(const Fold& fold, bool singles, Buffer buffer, std::int32_t c, std::int32_t stride) {
  const std::int32_t pairs = c < fold.pairs() ? (fold.pairs() - 1 - c) / stride + 1 : 0;
  if (!singles) return {buffer, fixed(2 * c), 2 * pairs, 2, 2 * stride};
  const std::int32_t first = c + pairs * stride;
  const std::int32_t size = first < fold.acting() ? (fold.acting() - 1 - first) / stride + 1 : 0;
  return every(buffer, fixed(fold.rank(first)), size, stride);
}

}  // namespace

Plan reduce_scatter_halving(const Request& request) {
  const Fold fold(request.world);
  const std::int32_t p = request.world.value;
  const Rank r = request.rank;
  const Chunk result = output(fixed(r));
  const Rotating partner = fixed(fold.partner(r));

  LaneBuilder lane;
  if (p == 1) {
    lane.copy(input(fixed(0)), result, /*final=*/true);
  } else if (fold.idles(r)) {
    lane.send(partner, window(Buffer::input, fixed(0), p));
    lane.recv(partner, result);
  } else {
    const bool paired = fold.in_pair(r);
    const std::int32_t q = fold.number(r);
    if (paired) lane.recv_reduce(partner, window(Buffer::input, fixed(0), p), window(Buffer::scratch, fixed(0), p));
    Buffer source = paired ? Buffer::scratch : Buffer::input;
    for (std::int32_t bit = 1; bit < fold.acting(); bit *= 2) {
      const Rotating peer = fixed(fold.rank(q ^ bit));
      const bool last = 2 * bit == fold.acting();
      for (const bool singles : {false, true}) {
        const Chunk given = blocks_of(fold, singles, source, (q ^ bit) & (2 * bit - 1), 2 * bit);
        if (given.size > 0) lane.send(peer, given);
      }
      for (const bool singles : {false, true}) {
        const Chunk kept = blocks_of(fold, singles, source, q & (2 * bit - 1), 2 * bit);
        Chunk target = kept;
        target.buffer = Buffer::scratch;
        if (kept.size > 0) lane.recv_reduce(peer, kept, last && !paired ? result : target, last);
      }
      source = Buffer::scratch;
    }
    if (paired) {
      lane.send(partner, scratch(fixed(fold.partner(r))));
      lane.copy(scratch(fixed(r)), result);
    }
  }
  // Two partners send each other two messages at once if, in the first round, pairs and single ranks stand on both sides.
  const bool two_messages = fold.pairs() >= 2 && fold.acting() - fold.pairs() >= 2;
  return {.chunks = 1,
          .scratch = p > 2 && !fold.idles(r) ? p : 0,
          .credits = two_messages ? 2 : 1,
          .order = Order::butterfly,
          .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
