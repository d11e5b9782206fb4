// SPDX-License-Identifier: Apache-2.0
// Which additions made a value, as a number: two sums have the same number exactly if they were added in the same tree (up to
// chance, 1 in 2^64). Addition of floats is commutative bit for bit but not associative, so a tree's children are unordered.
// Pure functions.
#pragma once

#include <cstdint>

#include "core/types.h"

namespace shoal::plan {

// What a rank contributes.
constexpr std::uint64_t order_of(Rank rank) {
  std::uint64_t x = static_cast<std::uint64_t>(rank.value) + 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// The sum of two.
constexpr std::uint64_t order_of_sum(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = (a ^ b) + 0x9e3779b97f4a7c15 * (a + b);
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93;
  return x ^ (x >> 29);
}

// Order::butterfly. With p' the largest power of two in the world and rem = world - p': ranks 2i and 2i+1 (i < rem) are added
// first and make leaf i; each rank r >= 2 rem is leaf r - rem; then neighbouring leaves are added, neighbouring pairs, and so on:
// ((l0 + l1) + (l2 + l3)) + ...
std::uint64_t butterfly_order(World world);

}  // namespace shoal::plan
