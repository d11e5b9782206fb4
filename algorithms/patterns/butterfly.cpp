// SPDX-License-Identifier: Apache-2.0
#include "algorithms/patterns/butterfly.h"

#include <bit>

#include "algorithms/patterns/fold.h"

namespace shoal::algorithms {

using namespace plan;

namespace {

// Recursive halving: the bits of q in reverse.
std::int32_t halving_label(std::int32_t q, std::int32_t rounds) {
  std::int32_t label = 0;
  for (std::int32_t k = 0; k < rounds; ++k) label = 2 * label + ((q >> k) & 1);
  return label;
}

// Swing: the ranks that q can still reach from round k on are, among the even ones, those equal modulo 2^(k+1); an odd rank
// belongs to the even one that it meets in that round. So the halves of round k differ in bit k+1 of that even rank; those of the
// last round are an even and an odd rank.
std::int32_t swing_label(std::int32_t q, std::int32_t rounds) {
  std::int32_t label = 0;
  for (std::int32_t k = 0; k + 1 < rounds; ++k) {
    const std::int32_t even = q % 2 == 0 ? q : q - swing_distance(k + 1);
    label = 2 * label + ((even >> (k + 1)) & 1);
  }
  return 2 * label + q % 2;
}

}  // namespace

std::int32_t swing_distance(std::int32_t round) {
  const std::int64_t power = std::int64_t{1} << (round + 1);
  return static_cast<std::int32_t>((1 - (round % 2 == 0 ? -power : power)) / 3);
}

std::int32_t Butterfly::rounds() const { return std::countr_zero(static_cast<std::uint32_t>(ranks_)); }

std::int32_t Butterfly::partner(std::int32_t q, std::int32_t round) const {
  if (kind_ == Kind::halving) return q ^ (1 << round);
  const std::int32_t distance = swing_distance(round);
  return (q + (q % 2 == 0 ? distance : -distance)) & (ranks_ - 1);
}

std::int32_t Butterfly::label(std::int32_t q) const {
  return kind_ == Kind::halving ? halving_label(q, rounds()) : swing_label(q, rounds());
}

Plan butterfly_all_reduce(const Request& request, Butterfly::Kind kind) {
  const Fold fold(request.world);
  const Butterfly butterfly(kind, fold.acting());
  const Rank r = request.rank;
  const auto whole = [&](Buffer buffer) { return window(buffer, fixed(0), fold.acting()); };
  const Rotating partner = fixed(fold.partner(r));

  LaneBuilder lane;
  if (request.world.value == 1) {
    lane.copy(whole(Buffer::input), whole(Buffer::output), /*final=*/true);
  } else if (fold.idles(r)) {
    lane.send(partner, whole(Buffer::input));
    lane.recv(partner, whole(Buffer::output));
  } else {
    const bool folded = fold.in_pair(r);
    const auto rank_of = [&fold](std::int32_t number) { return fold.rank(number); };
    if (folded) lane.recv_reduce(partner, whole(Buffer::input), whole(Buffer::output));
    butterfly_reduce_scatter(lane, butterfly, fold.number(r), rank_of, folded ? Buffer::output : Buffer::input, Buffer::output);
    butterfly_all_gather(lane, butterfly, fold.number(r), rank_of, Buffer::output);
    if (folded) lane.send(partner, whole(Buffer::output));
  }
  return {.chunks = fold.acting(),
          .credits = 1,
          .by_reference = true,
          .order = kind == Butterfly::Kind::halving ? Order::butterfly : Order::any,
          .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
