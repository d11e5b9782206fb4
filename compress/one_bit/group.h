// SPDX-License-Identifier: Apache-2.0
// What the kernels of one-bit encoding work on: up to 32 rows of up to kWidth columns. Internal to this folder.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shoal::compress::one_bit {

inline constexpr std::size_t kRows = 32;    // bits of a word
inline constexpr std::size_t kLanes = 16;   // columns at once: a cache line of float32
inline constexpr std::size_t kWidth = 512;  // columns of a panel: what is known of them stays in the first-level cache

struct Group {
  const float* input;
  const float* residual;  // null: none
  float scale;
  std::size_t rows;
  std::size_t stride;  // elements from row to row, of input and residual
};

// Of columns, in memory that has room for a multiple of 16 of them.
struct Sums {
  float* upper;          // added to
  float* lower;          // added to
  std::uint32_t* ones;   // added to
  std::uint32_t* words;  // written
  Sums from(std::size_t column) const { return {upper + column, lower + column, ones + column, words + column}; }
};

struct Means {
  const float* upper;
  const float* lower;
  const std::uint32_t* words;
  Means from(std::size_t column) const { return {upper + column, lower + column, words + column}; }
};

struct Table {
  alignas(64) float upper[kWidth];
  alignas(64) float lower[kWidth];
  alignas(64) std::uint32_t ones[kWidth];
  alignas(64) std::uint32_t words[kWidth];
};

}  // namespace shoal::compress::one_bit
