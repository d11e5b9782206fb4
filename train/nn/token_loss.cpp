// SPDX-License-Identifier: Apache-2.0
#include "train/nn/token_loss.h"

#include <algorithm>
#include <cmath>

namespace shoal::train {

void TokenLoss::largest(std::span<const float> logits, std::span<float> largest) const {
  for (std::size_t t = 0; t < largest.size(); ++t) largest[t] = std::ranges::max(logits.subspan(t * count, count));
}

void TokenLoss::exponentials(std::span<float> logits, std::span<const float> largest, std::span<const std::int32_t> targets,
                             std::span<float> sums, std::span<float> target_logits) const {
  for (std::size_t t = 0; t < largest.size(); ++t) {
    const auto row = logits.subspan(t * count, count);
    const auto at = static_cast<std::size_t>(targets[t]) - first;  // wraps around for a target before the range
    target_logits[t] = targets[t] >= 0 && at < count ? row[at] : 0.0F;
    double sum = 0;
    for (float& each : row) sum += each = std::exp(each - largest[t]);
    sums[t] = static_cast<float>(sum);
  }
}

double TokenLoss::loss(std::span<const std::int32_t> targets, std::span<const float> largest, std::span<const float> sums,
                       std::span<const float> target_logits) {
  double loss = 0;
  for (std::size_t t = 0; t < targets.size(); ++t)
    if (targets[t] >= 0) loss += std::log(static_cast<double>(sums[t])) + largest[t] - static_cast<double>(target_logits[t]);
  return loss;
}

void TokenLoss::gradient(std::span<float> exponentials, std::span<const std::int32_t> targets, std::span<const float> sums,
                         float weight) const {
  for (std::size_t t = 0; t < targets.size(); ++t) {
    const auto row = exponentials.subspan(t * count, count);
    if (targets[t] < 0) {
      std::ranges::fill(row, 0.0F);
      continue;
    }
    for (float& each : row) each *= weight / sums[t];
    const auto at = static_cast<std::size_t>(targets[t]) - first;
    if (at < count) row[at] -= weight;
  }
}

}  // namespace shoal::train
