// SPDX-License-Identifier: Apache-2.0
// Sums over the samples of a batch whose bits do not depend on who adds them up, or in which order.
//
// Float32 addition rounds, so the same gradients added in another order differ in the last bit; a ReLU that such a bit pushes
// over zero turns that into a different run within an epoch. Hence two rules. Samples are computed in blocks of kSampleBlock that
// are never cut, each with products of the same shape wherever it is computed. And before they are added, a block's gradients are
// rounded to multiples of kGradientGrid (pre-rounding: Rump 2009; Demmel and Nguyen 2013): while a sum stays below 2^24 grid
// steps every partial sum is exact, in a rank, in an all-reduce of any algorithm, in any world. A larger sum is rounded as usual.
//
// Gradients are those of the batch's mean loss, of magnitude 1e-4 to 1; the grid is far below their noise. Pure functions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace shoal::train {

inline constexpr std::size_t kSampleBlock = 8;
inline constexpr float kGradientGrid = 0x1p-21F;  // 4.8e-7; sums are exact below 8

// The nearest multiple of the grid: adding 1.5 * 2^23 steps leaves no bit below a step.
inline float on_grid(float value) {
  constexpr float kShift = 12582912.0F * kGradientGrid;
  return (value + kShift) - kShift;
}

// sum[i] += block[i], on the grid.
inline void add_block(std::span<const float> block, std::span<float> sum) {
  const float* from = block.data();
  float* to = sum.data();
  for (std::size_t i = 0; i < sum.size(); ++i) to[i] += on_grid(from[i]);
}

// Calls body(first, count) for the consecutive blocks of `samples`; only the last may be short.
template <typename Body>
void for_each_block(std::size_t samples, Body&& body) {
  for (std::size_t first = 0; first < samples; first += kSampleBlock) body(first, std::min(kSampleBlock, samples - first));
}

}  // namespace shoal::train
