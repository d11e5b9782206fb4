// SPDX-License-Identifier: Apache-2.0
#include "train/nn/sgd.h"

#include <cmath>
#include <numbers>

namespace shoal::train {

float learning_rate(double peak, std::size_t step, std::size_t steps) {
  const std::size_t warm_up = steps / 20;
  if (step < warm_up) return static_cast<float>(peak * static_cast<double>(step + 1) / static_cast<double>(warm_up + 1));
  const double progress = static_cast<double>(step - warm_up) / static_cast<double>(steps - warm_up);
  return static_cast<float>(peak * 0.5 * (1.0 + std::cos(std::numbers::pi * progress)));
}

void Sgd::update(std::span<const Tensor> tensors, Range range, float rate, std::span<const float> gradients,
                 std::span<float> values) {
  const float momentum = static_cast<float>(options_.momentum);
  for (const Tensor& tensor : tensors) {
    if (tensor.offset < range.begin || tensor.offset >= range.end) continue;
    const float decay = tensor.spec.fan_in == 0 ? 0.0F : static_cast<float>(options_.weight_decay);
    const float* g = gradients.subspan(tensor.offset, tensor.count).data();
    float* w = values.subspan(tensor.offset, tensor.count).data();
    float* v = std::span(velocity_).subspan(tensor.offset, tensor.count).data();
    for (std::size_t i = 0; i < tensor.count; ++i) {
      v[i] = momentum * v[i] + (g[i] + decay * w[i]);
      w[i] -= rate * v[i];
    }
  }
}

}  // namespace shoal::train
