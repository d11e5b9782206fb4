// SPDX-License-Identifier: Apache-2.0
#include "train/nn/layer_norm.h"

#include <cmath>

namespace shoal::train {
namespace {

constexpr double kEpsilon = 1e-5;

}  // namespace

void LayerNorm::forward(std::span<const float> x, std::span<const float> gain, std::span<const float> bias, std::span<float> y,
                        std::span<float> statistics) const {
  for (std::size_t t = 0; t < x.size() / width; ++t) {
    const float* in = x.data() + t * width;
    float* out = y.data() + t * width;
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < width; ++i) sum += in[i];
    const double mean = sum / static_cast<double>(width);
    for (std::size_t i = 0; i < width; ++i) squares += (in[i] - mean) * (in[i] - mean);
    const double inverse = 1 / std::sqrt(squares / static_cast<double>(width) + kEpsilon);
    statistics[2 * t] = static_cast<float>(mean);
    statistics[2 * t + 1] = static_cast<float>(inverse);
    for (std::size_t i = 0; i < width; ++i) out[i] = (in[i] - statistics[2 * t]) * statistics[2 * t + 1] * gain[i] + bias[i];
  }
}

void LayerNorm::backward(std::span<const float> x, std::span<const float> gain, std::span<const float> statistics,
                         std::span<const float> dy, std::span<float> dx, std::span<float> gain_gradient,
                         std::span<float> bias_gradient) const {
  for (std::size_t t = 0; t < x.size() / width; ++t) {
    const float* in = x.data() + t * width;
    const float* flowing = dy.data() + t * width;
    float* out = dx.data() + t * width;
    const float mean = statistics[2 * t], inverse = statistics[2 * t + 1];
    double sum = 0, along = 0;  // of the gradient by the normalised value, and its product with that value
    for (std::size_t i = 0; i < width; ++i) {
      const float normal = (in[i] - mean) * inverse, by_normal = flowing[i] * gain[i];
      gain_gradient[i] += flowing[i] * normal;
      bias_gradient[i] += flowing[i];
      sum += by_normal;
      along += static_cast<double>(by_normal) * normal;
    }
    const auto mean_sum = static_cast<float>(sum / static_cast<double>(width));
    const auto mean_along = static_cast<float>(along / static_cast<double>(width));
    for (std::size_t i = 0; i < width; ++i) {
      const float normal = (in[i] - mean) * inverse;
      out[i] += inverse * (flowing[i] * gain[i] - mean_sum - normal * mean_along);
    }
  }
}

}  // namespace shoal::train
