// SPDX-License-Identifier: Apache-2.0
// Scalar conversions between float32 and the narrow float types: the reference for the vector kernels, and for tests and tools
// that need single values. Rounds to nearest, ties to even. Any thread, no state.
#pragma once

#include <cstdint>

namespace shoal::device {

float from_float16(std::uint16_t bits);
float from_bfloat16(std::uint16_t bits);
float from_float8_e4m3(std::uint8_t bits);
float from_float8_e5m2(std::uint8_t bits);

std::uint16_t to_float16(float value);
std::uint16_t to_bfloat16(float value);
// Finite values beyond the largest finite one saturate; NaN stays NaN; infinity becomes 448 (e4m3 has none) or stays (e5m2).
std::uint8_t to_float8_e4m3(float value);
std::uint8_t to_float8_e5m2(float value);

}  // namespace shoal::device
