// SPDX-License-Identifier: Apache-2.0
// What vectors of float32 take in the library's wire formats (docs/compression.md). Pure functions.
#pragma once

#include <cstddef>
#include <string_view>

namespace shoal::train {

// Elements that share a scale; 1: none do.
inline std::size_t wire_block(std::string_view format) {
  if (format == "int4") return 32;
  return format == "int8" || format.starts_with("fp8") ? 128 : 1;
}

// [bytes] of n elements; `word`: of one as it is, which is how it goes without a format.
inline std::size_t wire_bytes(std::string_view format, std::size_t n, std::size_t word) {
  if (format.empty()) return n * word;
  const std::size_t block = wire_block(format);
  if (block == 1) return 2 * n;  // bf16, fp16
  const std::size_t scales = (n + block - 1) / block;
  return (format == "int4" ? (n + 1) / 2 : n) + 2 * scales;
}

}  // namespace shoal::train
