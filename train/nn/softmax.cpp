// SPDX-License-Identifier: Apache-2.0
#include "train/nn/softmax.h"

#include <algorithm>
#include <cmath>

namespace shoal::train {

Score& Score::operator+=(const Score& other) {
  loss += other.loss;
  correct += other.correct;
  samples += other.samples;
  return *this;
}

Score cross_entropy(std::span<const float> logits, std::span<const std::uint8_t> labels, double weight,
                    std::span<float> gradient) {
  Score score;
  const std::size_t classes = labels.empty() ? 0 : logits.size() / labels.size();
  for (std::size_t s = 0; s < labels.size(); ++s) {
    const auto row = logits.subspan(s * classes, classes);
    const auto largest = std::ranges::max_element(row);
    double sum = 0;  // of exp(x - largest), which cannot overflow
    for (const float x : row) sum += static_cast<double>(std::exp(x - *largest));
    score.loss += std::log(sum) - static_cast<double>(row[labels[s]] - *largest);
    score.correct += largest - row.begin() == labels[s] ? 1 : 0;
    score.samples += 1;
    if (gradient.empty()) continue;
    const auto out = gradient.subspan(s * classes, classes);
    for (std::size_t c = 0; c < classes; ++c) {
      const double probability = static_cast<double>(std::exp(row[c] - *largest)) / sum;
      out[c] = static_cast<float>(weight * (probability - (c == labels[s] ? 1.0 : 0.0)));
    }
  }
  return score;
}

}  // namespace shoal::train
