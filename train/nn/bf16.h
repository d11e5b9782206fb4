// SPDX-License-Identifier: Apache-2.0
// bfloat16: the upper half of a float32, rounded to nearest even. What mixed-precision training stores weights and gradients in;
// all arithmetic is float32. Value type and pure functions; any thread.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace shoal::train {

struct Bf16 {
  std::uint16_t bits = 0;
};

inline Bf16 to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (value != value) return {static_cast<std::uint16_t>((bits >> 16) | 0x40U)};  // a NaN stays one
  return {static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16)};
}
inline float to_float(Bf16 value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16); }

inline void to_bf16(std::span<const float> from, std::span<Bf16> to) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = to_bf16(from[i]);
}
inline void to_float(std::span<const Bf16> from, std::span<float> to) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = to_float(from[i]);
}

}  // namespace shoal::train
