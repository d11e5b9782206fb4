// SPDX-License-Identifier: Apache-2.0
// Who talks to whom in NCCL's double binary tree. Pure; any thread.
//
// First tree: rank 0 is the root, with one child; below it every rank stands at the height of its lowest set bit. Second tree:
// the first one mirrored (rank r plays p-1-r) where p is even, shifted by one (r plays r-1 mod p) where it is odd. For eight
// ranks:
//
//   0 ── 4 ─┬─ 2 ─┬─ 1        7 ── 3 ─┬─ 5 ─┬─ 6
//           │     └─ 3                │     └─ 4        the inner ranks of one tree are the leaves of the other (where p is
//           └─ 6 ─┬─ 5                └─ 1 ─┬─ 2        odd, rank 0 alone is inner in both, with one child in the first)
//                 └─ 7                      └─ 0
//
// No rank is deeper than ceil(log2 p). Sanders, Speck & Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and
// scan" 2009.
#pragma once

#include <bit>
#include <cstdint>

#include "core/types.h"

namespace shoal::algorithms {

// A rank's place in one of the trees. Neighbours are ranks; -1 where there is none.
struct TreePlace {
  std::int32_t parent = -1;  // of all but the root
  std::int32_t children = 0;
  std::int32_t child[2] = {-1, -1};
};

// Of rank r in the first tree over p ranks.
constexpr TreePlace first_tree(std::int32_t p, std::int32_t r) {
  TreePlace place;
  const auto add = [&place](std::int32_t child) { place.child[place.children++] = child; };
  if (r == 0) {
    if (p > 1) add(static_cast<std::int32_t>(std::bit_floor(static_cast<std::uint32_t>(p - 1))));
    return place;
  }
  const std::int32_t bit = r & -r;
  const std::int32_t up = (r ^ bit) | (2 * bit);
  place.parent = up < p ? up : r ^ bit;
  if (bit == 1) return place;
  add(r - bit / 2);
  std::int32_t reach = bit / 2;  // the upper subtree may be cut short
  while (reach > 0 && r + reach >= p) reach /= 2;
  if (reach > 0) add(r + reach);
  return place;
}

// The root of tree 0 or 1 over p ranks.
constexpr std::int32_t double_tree_root(std::int32_t tree, std::int32_t p) {
  if (tree == 0) return 0;
  return p % 2 == 0 ? p - 1 : 1 % p;
}

// Of rank r in tree 0 or 1 over p ranks.
constexpr TreePlace double_tree(std::int32_t tree, std::int32_t p, std::int32_t r) {
  if (tree == 0) return first_tree(p, r);
  const bool mirrored = p % 2 == 0;
  const auto there_and_back = [&](std::int32_t rank, std::int32_t shift) {
    return rank < 0 ? rank : mirrored ? p - 1 - rank : (rank + shift + p) % p;
  };
  TreePlace place = first_tree(p, there_and_back(r, -1));
  place.parent = there_and_back(place.parent, 1);
  for (std::int32_t& child : place.child) child = there_and_back(child, 1);
  return place;
}

}  // namespace shoal::algorithms
