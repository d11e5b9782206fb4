// SPDX-License-Identifier: Apache-2.0
#include "algorithms/patterns/elimination.h"

#include <bit>

namespace shoal::algorithms {
namespace {

// One level of the way down to a group: the number of ranks in the group above, and which of its halves was taken.
struct Level {
  std::int32_t ranks;
  bool upper;
};

// The position, in the group above, of position j of the group below. In groups of an odd number position 2 is out, and the upper
// half goes to 0, 4, 6, ...
std::int32_t position_above(const Level& level, std::int32_t j) {
  if (level.ranks % 2 == 0) return 2 * j + (level.upper ? 1 : 0);
  if (!level.upper) return 2 * j + 1;
  return j == 0 ? 0 : 2 * j + 2;
}

std::int32_t rank_of(const std::vector<Level>& path, std::int32_t position) {
  for (auto level = path.rbegin(); level != path.rend(); ++level) position = position_above(*level, position);
  return position;
}

}  // namespace

std::vector<Halving> halvings(std::int32_t p, std::int32_t r) {
  std::vector<Halving> rounds;
  std::vector<Level> path;
  std::int32_t ranks = p, position = r, first = 0;
  auto half = static_cast<std::int32_t>(std::bit_floor(static_cast<std::uint32_t>(p))) / 2;
  for (; ranks > 1; ranks /= 2, half /= 2) {
    Halving round{.first = first, .half = half, .finishes = ranks / 2 == 1};
    const bool odd = ranks % 2 != 0;
    bool upper = false;
    if (odd && position < 3) {
      constexpr Halving::Role kRoles[] = {Halving::Role::triple_upper, Halving::Role::triple_lower, Halving::Role::triple_out};
      round.role = kRoles[position];
      for (std::int32_t i = 0; i < 3; ++i) round.triple[i] = rank_of(path, i);
      upper = position == 0;
    } else {
      upper = (position % 2 != 0) != odd;
      round.role = upper ? Halving::Role::upper : Halving::Role::lower;
      round.partner = rank_of(path, upper ? position - 1 : position + 1);
    }
    rounds.push_back(round);
    if (round.role == Halving::Role::triple_out) break;
    // The position below: the inverse of position_above.
    if (!odd || !upper)
      position /= 2;
    else if (position != 0)
      position = position / 2 - 1;
    path.push_back({ranks, upper});
    if (upper) first += half;
  }
  return rounds;
}

}  // namespace shoal::algorithms
