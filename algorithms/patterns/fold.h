// SPDX-License-Identifier: Apache-2.0
// Folding: how an algorithm for powers of two serves every world. Pure; any thread.
//
// With p' the largest power of two below or equal to p and rem = p - p', each of the first rem pairs of ranks (0,1), (2,3), ...
// acts as one: the even rank hands its vector to the odd one above and idles. The p' that act are numbered anew. For six ranks:
//
//   rank    0   1   2   3   4   5
//   acts        0       1   2   3
//
// Cost of a fold: 2 more rounds, n bytes up and n bytes back. Thakur, Rabenseifner & Gropp 2005.
#pragma once

#include <bit>
#include <cstdint>

#include "core/types.h"

namespace shoal::algorithms {

class Fold {
 public:
  constexpr explicit Fold(World world)
      : acting_(static_cast<std::int32_t>(std::bit_floor(static_cast<std::uint32_t>(world.value)))),
        rem_(world.value - acting_) {}

  constexpr std::int32_t acting() const { return acting_; }
  // How many pairs act as one.
  constexpr std::int32_t pairs() const { return rem_; }

  constexpr bool in_pair(Rank r) const { return r.value < 2 * rem_; }
  constexpr bool idles(Rank r) const { return in_pair(r) && r.value % 2 == 0; }
  // The other of the pair.
  constexpr Rank partner(Rank r) const { return {r.value ^ 1}; }

  // The number of a rank, or of its pair, among those that act; and the rank that acts under that number.
  constexpr std::int32_t number(Rank r) const { return in_pair(r) ? r.value / 2 : r.value - rem_; }
  constexpr Rank rank(std::int32_t number) const { return {number < rem_ ? 2 * number + 1 : number + rem_}; }

 private:
  std::int32_t acting_, rem_;
};

}  // namespace shoal::algorithms
