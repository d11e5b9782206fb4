// SPDX-License-Identifier: Apache-2.0
// A linear map of tokens, y = x W^T + b, and its derivative in two halves that may run at different times: by the input, which
// the layer below waits for, and by the parameters, for which nobody does. Row-major: x (tokens, inputs), W (outputs, inputs), y
// (tokens, outputs). Pure functions over the caller's memory; any thread.
#pragma once

#include <cstddef>
#include <span>

namespace shoal::train {

struct Linear {
  std::size_t inputs = 0;
  std::size_t outputs = 0;

  // An empty bias is none.
  void forward(std::span<const float> x, std::span<const float> weight, std::span<const float> bias, std::span<float> y) const;
  // Overwrites dx.
  void input_gradient(std::span<const float> dy, std::span<const float> weight, std::span<float> dx) const;
  // Adds; an empty bias_gradient is none.
  void parameter_gradient(std::span<const float> x, std::span<const float> dy, std::span<float> weight_gradient,
                          std::span<float> bias_gradient) const;
};

}  // namespace shoal::train
