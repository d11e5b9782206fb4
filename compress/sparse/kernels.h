// SPDX-License-Identifier: Apache-2.0
// The passes over whole vectors that sparse compressors make, with run-time choice of the instruction set; the same bits with
// every one. Pure functions: any thread, no state, no allocation.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace shoal::compress::sparse {

// |x| as an integer that orders like it: not-a-numbers above infinity, which is kInfinite.
constexpr std::uint32_t kInfinite = 0x7F800000;
inline std::uint32_t magnitude(float x) { return std::bit_cast<std::uint32_t>(x) & 0x7FFFFFFF; }

constexpr std::uint32_t kTakeNone = 0x80000000;  // a threshold above all magnitudes
constexpr std::size_t kSlack = 16;               // entries that accumulate may overwrite behind those it appends
constexpr std::size_t kBlock = 4096;             // elements that callers give at a time, so that what they take has an end

// One step of what is accumulated, element by element, with g = scale * input:
//   nothing remembered:  v' = g, which is not written
//   residual v:          v' = v + g
//   and velocity u:      u' = m u + g, v' = v + u'; Nesterov's: u' = m (u + g), v' = v + u' + g     (m: the momentum)
// No output overlaps an input. Outputs are aligned to kAlignment where they stream.
struct Accumulation {
  const float* input = nullptr;
  float scale = 1;
  const float* residual = nullptr;
  const float* velocity = nullptr;
  float* next_residual = nullptr;
  float* next_velocity = nullptr;
  float momentum = 0;
  bool nesterov = false;
  bool stream = false;  // outputs go past the caches
};

// v' of one element, and u' to `velocity`.
inline float accumulated(const Accumulation& a, std::size_t i, float& velocity) {
  const float g = a.scale * a.input[i];
  if (a.residual == nullptr) return g;
  if (a.velocity == nullptr) return a.residual[i] + g;
  if (a.nesterov) {
    velocity = a.momentum * (a.velocity[i] + g);
    return a.residual[i] + velocity + g;
  }
  velocity = a.momentum * a.velocity[i] + g;
  return a.residual[i] + velocity;
}

// The step for elements [begin, end); begin is a multiple of kBlock. Appends index and v' of those whose magnitude is at least
// the threshold, in order, and returns their number; there is room for end - begin + kSlack. `largest` becomes the largest
// magnitude that it and all v' have.
std::size_t accumulate(const Accumulation& a, std::size_t begin, std::size_t end, std::uint32_t threshold, std::uint32_t* indices,
                       float* values, std::uint32_t& largest);

// The step for all n elements, taking nothing. False if any v' is not finite.
bool advance(const Accumulation& a, std::size_t n);

// True if all elements are finite.
inline bool all_finite(const float* x, std::size_t n) { return advance({.input = x}, n); }

// out[i] = 0; past the caches where that is worth it.
void fill_zero(float* out, std::size_t n);

// In float64, in one order of additions. Not finite if any element is not.
double sum_of_squares(const float* x, std::size_t n);

// Well mixed bits of a number (splitmix64): draws are a function of seed, call and place.
inline std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// From how many bytes on it is worth it to write past the caches: a vector that the last-level cache will not keep until it is
// read again.
constexpr std::size_t kStreamBytes = std::size_t{8} << 20;

}  // namespace shoal::compress::sparse
