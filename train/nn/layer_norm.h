// SPDX-License-Identifier: Apache-2.0
// Layer normalisation (Ba et al. 2016) of tokens: y = (x - mean) / sqrt(variance + 1e-5) * gain + bias, over the last dimension.
// Row-major (tokens, width). Pure functions; any thread.
#pragma once

#include <cstddef>
#include <span>

namespace shoal::train {

struct LayerNorm {
  std::size_t width = 0;

  // `statistics`: (tokens, 2), mean and 1 / deviation of each token, for backward.
  void forward(std::span<const float> x, std::span<const float> gain, std::span<const float> bias, std::span<float> y,
               std::span<float> statistics) const;
  // Adds to dx, gain_gradient and bias_gradient.
  void backward(std::span<const float> x, std::span<const float> gain, std::span<const float> statistics,
                std::span<const float> dy, std::span<float> dx, std::span<float> gain_gradient,
                std::span<float> bias_gradient) const;
};

}  // namespace shoal::train
