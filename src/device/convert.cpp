// SPDX-License-Identifier: Apache-2.0
#include "device/convert.h"

#include <algorithm>
#include <bit>

namespace shoal::device {
namespace {

constexpr std::uint32_t kSign32 = 0x80000000;
constexpr std::uint32_t kInfinity32 = 0x7F800000;
constexpr std::uint32_t kQuiet32 = 0x00400000;

// value / 2^shift, to nearest, ties to even; shift >= 1.
constexpr std::uint32_t round_shift(std::uint32_t value, int shift) {
  const std::uint32_t odd = (value >> shift) & 1;
  return (value + (1U << (shift - 1)) - 1 + odd) >> shift;
}

// Exponent and mantissa fields of a finite |value| in a format with kMantissa mantissa bits and bias kBias, as if its exponent
// had no upper end: a carry out of the mantissa lands in the exponent, and the caller decides what too large means.
template <int kMantissa, int kBias>
constexpr std::uint32_t narrow(std::uint32_t magnitude) {
  constexpr int kDropped = 23 - kMantissa;
  constexpr int kSmallestNormal = 127 + 1 - kBias;  // its exponent field in float32
  const int exponent = static_cast<int>(magnitude >> 23);
  if (exponent >= kSmallestNormal) return round_shift(magnitude - (static_cast<std::uint32_t>(127 - kBias) << 23), kDropped);
  const int shift = kDropped + kSmallestNormal - exponent;
  if (shift > 24) return 0;  // below half of the smallest subnormal, float32's own subnormals included
  return round_shift((magnitude & 0x007FFFFF) | 0x00800000, shift);
}

// The other way, exact, for finite values only.
template <int kMantissa, int kBias>
float widen(std::uint32_t magnitude) {
  const std::uint32_t mantissa = magnitude & ((1U << kMantissa) - 1);
  const std::uint32_t exponent = magnitude >> kMantissa;
  if (exponent == 0) {
    const float unit = std::bit_cast<float>(static_cast<std::uint32_t>(127 + 1 - kBias - kMantissa) << 23);
    return static_cast<float>(mantissa) * unit;
  }
  return std::bit_cast<float>(((exponent + 127 - kBias) << 23) | (mantissa << (23 - kMantissa)));
}

float with_sign(float magnitude, bool negative) { return negative ? -magnitude : magnitude; }

}  // namespace

float from_float16(std::uint16_t bits) {
  const std::uint32_t magnitude = bits & 0x7FFFU;
  const std::uint32_t sign = (bits & 0x8000U) << 16;
  if (magnitude < 0x7C00) return with_sign(widen<10, 15>(magnitude), sign != 0);
  const std::uint32_t payload = (magnitude & 0x3FF) << 13;
  return std::bit_cast<float>(sign | kInfinity32 | payload | (payload != 0 ? kQuiet32 : 0));
}

float from_bfloat16(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

float from_float8_e4m3(std::uint8_t bits) {
  const std::uint32_t magnitude = bits & 0x7FU;
  const std::uint32_t sign = (bits & 0x80U) << 24;
  if (magnitude == 0x7F) return std::bit_cast<float>(sign | kInfinity32 | kQuiet32);
  return with_sign(widen<3, 7>(magnitude), sign != 0);
}

// The upper half of a float16.
float from_float8_e5m2(std::uint8_t bits) { return from_float16(static_cast<std::uint16_t>(bits << 8)); }

std::uint16_t to_float16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & ~kSign32;
  const std::uint32_t sign = (bits & kSign32) >> 16;
  if (magnitude > kInfinity32) return static_cast<std::uint16_t>(sign | 0x7E00 | ((magnitude >> 13) & 0x3FF));
  return static_cast<std::uint16_t>(sign | std::min(narrow<10, 15>(magnitude), 0x7C00U));
}

std::uint16_t to_bfloat16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & ~kSign32) > kInfinity32) return static_cast<std::uint16_t>((bits >> 16) | 0x40);  // quiet, and never an infinity
  const std::uint32_t odd = (bits >> 16) & 1;
  return static_cast<std::uint16_t>((bits + 0x7FFF + odd) >> 16);
}

std::uint8_t to_float8_e4m3(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & ~kSign32;
  const std::uint32_t sign = (bits & kSign32) >> 24;
  if (magnitude > kInfinity32) return static_cast<std::uint8_t>(sign | 0x7F);
  return static_cast<std::uint8_t>(sign | std::min(narrow<3, 7>(magnitude), 0x7EU));
}

std::uint8_t to_float8_e5m2(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & ~kSign32;
  const std::uint32_t sign = (bits & kSign32) >> 24;
  if (magnitude > kInfinity32) return static_cast<std::uint8_t>(sign | 0x7F);
  if (magnitude == kInfinity32) return static_cast<std::uint8_t>(sign | 0x7C);
  return static_cast<std::uint8_t>(sign | std::min(narrow<2, 15>(magnitude), 0x7BU));
}

}  // namespace shoal::device
