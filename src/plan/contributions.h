// SPDX-License-Identifier: Apache-2.0
// What the checker knows of one value: which chunk it is of, and which ranks' inputs it contains. The knowledge has three forms:
// the one rank that a moved value comes from; a set of ranks, exactly; and, for worlds too large for sets, one element of a prime
// field: each rank counts as a random one, a sum as their sum, so that whatever was counted twice or never shows in the total
// (up to chance, 1 in 2^61). Value types.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "plan/order.h"

namespace shoal::plan {

// A set of fewer than 64 * Words ranks.
template <int Words>
class RankSet {
 public:
  RankSet() = default;  // of nobody
  explicit RankSet(Rank rank) { words_[index(rank)] = std::uint64_t{1} << (rank.value % 64); }
  static RankSet all(World world) {
    RankSet set;
    for (std::int32_t r = 0; r < world.value; ++r) set.add(RankSet(Rank{r}));
    return set;
  }

  bool overlaps(const RankSet& other) const {
    std::uint64_t both = 0;
    for (std::size_t i = 0; i < words_.size(); ++i) both |= words_[i] & other.words_[i];
    return both != 0;
  }
  // Some rank that both hold; -1 if there is none.
  std::int32_t common(const RankSet& other) const {
    for (std::size_t i = 0; i < words_.size(); ++i)
      if (const std::uint64_t both = words_[i] & other.words_[i]; both != 0)
        return static_cast<std::int32_t>(64 * i) + std::countr_zero(both);
    return -1;
  }
  void add(const RankSet& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
  }
  std::string describe(World world) const {
    int n = 0;
    for (std::uint64_t word : words_) n += std::popcount(word);
    return fmt::format("{} of {} contributions", n, world.value);
  }
  friend bool operator==(const RankSet&, const RankSet&) = default;

 private:
  static std::size_t index(Rank rank) { return static_cast<std::size_t>(rank.value) / 64; }
  std::array<std::uint64_t, Words> words_{};
};

// A sum in the field of integers modulo 2^61 - 1.
class FieldSum {
 public:
  FieldSum() = default;  // of nobody
  explicit FieldSum(Rank rank) : sum_(order_of(Rank{rank.value + (1 << 24)}) % kPrime) {}
  static FieldSum all(World world) {
    FieldSum sum;
    for (std::int32_t r = 0; r < world.value; ++r) sum.add(FieldSum(Rank{r}));
    return sum;
  }

  // Not known: a rank that is counted twice shows when the sum does not become complete.
  static constexpr bool overlaps(const FieldSum&) { return false; }
  static constexpr std::int32_t common(const FieldSum&) { return -1; }
  void add(const FieldSum& other) {
    sum_ += other.sum_;
    if (sum_ >= kPrime) sum_ -= kPrime;
  }
  std::string describe(World world) const {
    return *this == all(world) ? fmt::format("all {} contributions", world.value)
                               : fmt::format("a sum that is not each of {} contributions once", world.value);
  }
  friend bool operator==(const FieldSum&, const FieldSum&) = default;

 private:
  static constexpr std::uint64_t kPrime = (std::uint64_t{1} << 61) - 1;
  std::uint64_t sum_ = 0;
};

// A partial or finished sum of one chunk of the vector or blocks.
template <typename Contributions>
struct Sum {
  static constexpr bool kReduces = true;
  Contributions from;
  std::uint64_t order = 0;  // see order.h
  std::int32_t chunk = -1;  // -1: nothing was written yet
  bool final = false;

  Sum() = default;
  Sum(std::int32_t number, Rank rank) : from(rank), order(order_of(rank)), chunk(number) {}
};

// A chunk that is only moved: the number is the one in the input of the rank that it comes from.
struct Moved {
  static constexpr bool kReduces = false;
  std::int32_t chunk = -1;
  std::int32_t from = -1;

  Moved() = default;
  Moved(std::int32_t number, Rank rank) : chunk(number), from(rank.value) {}
};

}  // namespace shoal::plan
