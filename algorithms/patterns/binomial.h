// SPDX-License-Identifier: Apache-2.0
// Who talks to whom in a binomial tree. Pure; any thread.
//
// Ranks are relabelled so that the root is label 0: label = (rank - root) mod p. The parent of a label is the label without its
// lowest set bit; its children are label + 1, label + 2, label + 4, ... below that bit (and below p). Everything under a label,
// itself included, is the window of labels [label, label + subtree(label)): a message up or down the tree is one window.
//
//   0 ── 1         eight ranks: the children of 0 in the order of their bits are 1, 2 and 4; on the way down the
//   ├─── 2 ── 3    last is served first, for its subtree is the deepest.
//   └─── 4 ── 5
//        └─── 6 ── 7
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/types.h"

namespace shoal::algorithms {

class Binomial {
 public:
  constexpr Binomial(World world, Rank root) : p_(world.value), root_(root.value) {}

  constexpr std::int32_t label(Rank rank) const { return (rank.value - root_ + p_) % p_; }
  constexpr Rank rank(std::int32_t label) const { return {(label + root_) % p_}; }

  // Of a label that is not the root.
  constexpr std::int32_t parent(std::int32_t label) const { return label & (label - 1); }
  // Labels under this one, itself included.
  constexpr std::int32_t subtree(std::int32_t label) const { return label == 0 ? p_ : std::min(label & -label, p_ - label); }
  // In the order of their bits: the smallest subtree first.
  std::vector<std::int32_t> children(std::int32_t label) const {
    std::vector<std::int32_t> labels;
    for (std::int32_t bit = 1; bit < subtree(label); bit *= 2) labels.push_back(label + bit);
    return labels;
  }

 private:
  std::int32_t p_, root_;
};

}  // namespace shoal::algorithms
