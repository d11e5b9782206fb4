// SPDX-License-Identifier: Apache-2.0
// What the checker knows of one value: which chunk it is of, and which ranks' inputs it contains. Value type.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/types.h"

namespace shoal::plan {

class Contributions {
 public:
  Contributions() = default;  // of nobody
  Contributions(World world, Rank rank) : words_((static_cast<std::size_t>(world.value) + 63) / 64) {
    words_[index(rank)] = bit(rank);
  }

  bool contains(Rank rank) const { return index(rank) < words_.size() && (words_[index(rank)] & bit(rank)) != 0; }
  int size() const {
    int n = 0;
    for (std::uint64_t word : words_) n += std::popcount(word);
    return n;
  }
  // Some rank that both hold.
  std::optional<Rank> common(const Contributions& other) const {
    for (std::size_t i = 0; i < words_.size() && i < other.words_.size(); ++i)
      if (const std::uint64_t both = words_[i] & other.words_[i]; both != 0)
        return Rank{static_cast<std::int32_t>(64 * i) + std::countr_zero(both)};
    return std::nullopt;
  }
  void add(const Contributions& other) {
    if (words_.size() < other.words_.size()) words_.resize(other.words_.size());
    for (std::size_t i = 0; i < other.words_.size(); ++i) words_[i] |= other.words_[i];
  }
  friend bool operator==(const Contributions&, const Contributions&) = default;

 private:
  static std::size_t index(Rank rank) { return static_cast<std::size_t>(rank.value) / 64; }
  static std::uint64_t bit(Rank rank) { return std::uint64_t{1} << (rank.value % 64); }
  std::vector<std::uint64_t> words_;
};

struct Value {
  std::int32_t chunk = -1;  // -1: nothing was written yet
  Contributions from;
  bool final = false;
};

}  // namespace shoal::plan
