// SPDX-License-Identifier: Apache-2.0
// Halving and doubling: a reduce-scatter in log2 p' rounds of halving messages among p' = 2^k ranks, and the all-gather that is
// its mirror. Pure; used while a plan is built, by one thread.
//
// In round k a rank swaps with a partner: of the window of chunks that both have, one keeps the lower half and the other the
// upper. Which is whose follows from the labels: after the last round a rank has the chunk of its own label left, and the window
// of round k is all chunks that share the label's first k bits. For four ranks with labels 0, 2, 1, 3 and chunks a b c d:
//
//   rank 0   abcd   ab   a
//   rank 1   abcd   cd   c
//   rank 2   abcd   ab   b
//   rank 3   abcd   cd   d
//
// A kind of butterfly is its partners and labels: recursive halving (distances 1, 2, 4, ...), or Swing (1, -1, 3, -5, ...).
#pragma once

#include <cstdint>

#include "plan/builder.h"

namespace shoal::algorithms {

// Ranks here are numbers among those that act.
class Butterfly {
 public:
  enum class Kind : std::uint8_t { halving, swing };
  constexpr Butterfly(Kind kind, std::int32_t ranks) : kind_(kind), ranks_(ranks) {}

  std::int32_t ranks() const { return ranks_; }
  std::int32_t rounds() const;
  std::int32_t partner(std::int32_t q, std::int32_t round) const;
  // The chunk that q owns in the end.
  std::int32_t label(std::int32_t q) const;
  // The first chunk of q's window before `round`, and its size; round rounds() is the end.
  std::int32_t first(std::int32_t q, std::int32_t round) const { return label(q) & ~(size(round) - 1); }
  std::int32_t size(std::int32_t round) const { return ranks_ >> round; }

 private:
  Kind kind_;
  std::int32_t ranks_;
};

// Swing's distance in round k: 1, -1, 3, -5, 11, ...
std::int32_t swing_distance(std::int32_t round);

// The steps of number q, whose partners are rank_of(number). The vector is read from `own`, partial sums are kept in `partial`,
// both numbered alike. Two ranks or more.
template <typename RankOf>
void butterfly_reduce_scatter(plan::LaneBuilder& lane, const Butterfly& butterfly, std::int32_t q, RankOf&& rank_of,
                              plan::Buffer own, plan::Buffer partial) {
  using plan::fixed;
  for (std::int32_t k = 0; k < butterfly.rounds(); ++k) {
    const std::int32_t peer = butterfly.partner(q, k), half = butterfly.size(k + 1);
    const plan::Buffer source = k == 0 ? own : partial;
    lane.send(fixed(rank_of(peer)), plan::window(source, fixed(butterfly.first(peer, k + 1)), half));
    const std::int32_t kept = butterfly.first(q, k + 1);
    lane.recv_reduce(fixed(rank_of(peer)), plan::window(source, fixed(kept), half), plan::window(partial, fixed(kept), half),
                     /*final=*/half == 1);
  }
}

// From one finished chunk a rank to all chunks everywhere: the same swaps backwards.
template <typename RankOf>
void butterfly_all_gather(plan::LaneBuilder& lane, const Butterfly& butterfly, std::int32_t q, RankOf&& rank_of,
                          plan::Buffer buffer) {
  using plan::fixed;
  for (std::int32_t k = butterfly.rounds() - 1; k >= 0; --k) {
    const std::int32_t peer = butterfly.partner(q, k), half = butterfly.size(k + 1);
    lane.send(fixed(rank_of(peer)), plan::window(buffer, fixed(butterfly.first(q, k + 1)), half));
    lane.recv(fixed(rank_of(peer)), plan::window(buffer, fixed(butterfly.first(peer, k + 1)), half));
  }
}

// All-reduce over any world: folded, scattered by the butterfly, gathered, unfolded.
plan::Plan butterfly_all_reduce(const plan::Request& request, Butterfly::Kind kind);

}  // namespace shoal::algorithms
