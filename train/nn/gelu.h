// SPDX-License-Identifier: Apache-2.0
// GELU (Hendrycks and Gimpel 2016) in its tanh form, and its derivative. Pure functions; any thread.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>

namespace shoal::train {

inline constexpr float kGeluSlope = 0.7978845608F;  // sqrt(2 / pi)
inline constexpr float kGeluCubic = 0.044715F;

inline void gelu(std::span<const float> x, std::span<float> y) {
  for (std::size_t i = 0; i < x.size(); ++i)
    y[i] = 0.5F * x[i] * (1 + std::tanh(kGeluSlope * (x[i] + kGeluCubic * x[i] * x[i] * x[i])));
}

// gradient[i] *= gelu'(x[i])
inline void gelu_backward(std::span<const float> x, std::span<float> gradient) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float t = std::tanh(kGeluSlope * (x[i] + kGeluCubic * x[i] * x[i] * x[i]));
    gradient[i] *= 0.5F * (1 + t) + 0.5F * x[i] * (1 - t * t) * kGeluSlope * (1 + 3 * kGeluCubic * x[i] * x[i]);
  }
}

}  // namespace shoal::train
