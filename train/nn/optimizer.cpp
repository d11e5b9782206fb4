// SPDX-License-Identifier: Apache-2.0
#include "train/nn/optimizer.h"

#include <cmath>

namespace shoal::train {

void Optimizer::update(std::size_t step, float at_rate, bool decays, std::span<const float> gradient, std::span<float> values,
                       std::span<float> first, std::span<float> second) const {
  const auto decay = decays ? static_cast<float>(weight_decay) : 0.0F;
  if (rule == Rule::sgd) {
    const auto keeps = static_cast<float>(momentum);
    for (std::size_t i = 0; i < values.size(); ++i) {
      first[i] = keeps * first[i] + (gradient[i] + decay * values[i]);
      values[i] -= at_rate * first[i];
    }
    return;
  }
  // Means of gradients that began at zero are too small by 1 - beta^(step + 1).
  const auto count = static_cast<double>(step + 1);
  const auto correct1 = static_cast<float>(1 / (1 - std::pow(beta1, count))),
             correct2 = static_cast<float>(1 / (1 - std::pow(beta2, count)));
  const auto b1 = static_cast<float>(beta1), b2 = static_cast<float>(beta2), tiny = static_cast<float>(epsilon);
  const bool apart = rule == Rule::adamw;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float g = gradient[i] + (apart ? 0.0F : decay * values[i]);
    first[i] = b1 * first[i] + (1 - b1) * g;
    second[i] = b2 * second[i] + (1 - b2) * g * g;
    const float along = first[i] * correct1 / (std::sqrt(second[i] * correct2) + tiny);
    values[i] -= at_rate * (along + (apart ? decay * values[i] : 0.0F));
  }
}

double sum_of_squares(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * static_cast<double>(value);
  return sum;
}

float clip_factor(double squares, double clip) {
  return clip == 0 || squares <= clip * clip ? 1.0F : static_cast<float>(clip / std::sqrt(squares));
}

void scale(float factor, std::span<float> values) {
  if (factor == 1) return;
  for (float& value : values) value *= factor;
}

}  // namespace shoal::train
