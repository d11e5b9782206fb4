// SPDX-License-Identifier: Apache-2.0
// The IDX format of the MNIST family: {0, 0, type, dimensions}, one big-endian u32 a dimension, then the cells, last dimension
// fastest. The parser is strict: bytes only (type 8), the number of dimensions asked for, no empty dimension, and exactly as many
// cells as the dimensions say. Pure functions over bytes from outside; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shoal::train {

// Points into the bytes that were parsed.
struct Idx {
  std::vector<std::size_t> dimensions;  // slowest first: {images, rows, columns} or {labels}
  std::span<const std::uint8_t> cells;
};

inline constexpr std::size_t kMaxIdxDimensions = 4;

// Throws Error (Exit::usage) with what is wrong at which byte. 1 <= dimensions <= kMaxIdxDimensions.
Idx parse_idx(std::span<const std::uint8_t> bytes, std::size_t dimensions);

}  // namespace shoal::train
