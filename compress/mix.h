// SPDX-License-Identifier: Apache-2.0
// Draws that depend on a seed and a place alone: any thread, any order, every machine.
#pragma once

#include <cstdint>

namespace shoal::compress {

inline constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;  // odd; multiples of it spread over 64 bits

// The output function of SplitMix64 (Steele, Lea, Flood 2014): seeds that differ in any bit give unrelated numbers.
inline std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace shoal::compress
