// SPDX-License-Identifier: Apache-2.0
#include "train/image_model.h"

#include <algorithm>
#include <numeric>

namespace shoal::train {

Score ImageModel::forward(const Images& images, std::span<const std::uint32_t> samples, double weight,
                          std::span<float> gradient) {
  const auto labels = std::span(labels_).first(samples.size());
  images.gather(samples, network_.input(samples.size()), labels);
  return cross_entropy(network_.forward(samples.size()), labels, weight, gradient);
}

Score ImageModel::gradients(const Images& images, std::span<const std::uint32_t> samples, double weight,
                            const Network::Ready& ready, Into into) {
  const auto gradient = std::span(logit_gradient_).first(samples.size() * network_.output_size());
  const Score score = forward(images, samples, weight, gradient);
  network_.backward(samples.size(), gradient, ready, into);
  return score;
}

Score ImageModel::evaluate(const Images& images, Seat seat) {
  std::vector<std::uint32_t> all(images.count());
  std::iota(all.begin(), all.end(), 0U);
  auto mine = share(std::span<const std::uint32_t>(all), seat);
  Score score;
  while (!mine.empty()) {
    const auto piece = mine.first(std::min(mine.size(), network_.capacity()));
    score += forward(images, piece, 0.0, {});
    mine = mine.subspan(piece.size());
  }
  return score;
}

}  // namespace shoal::train
