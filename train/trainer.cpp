// SPDX-License-Identifier: Apache-2.0
#include "train/trainer.h"

#include <numeric>
#include <random>
#include <utility>

namespace shoal::train {

std::size_t steps_per_epoch(const Recipe& recipe, std::size_t samples) { return (samples + recipe.batch - 1) / recipe.batch; }

std::vector<std::uint32_t> shuffled(std::size_t samples, std::uint64_t seed, std::size_t epoch) {
  std::vector<std::uint32_t> order(samples);
  std::iota(order.begin(), order.end(), 0U);
  std::mt19937_64 engine(seed * 0x9e3779b97f4a7c15 + epoch + 1);  // apart from the engine that initialises the parameters
  // Fisher and Yates by hand: std::shuffle may differ between standard libraries. The bias of the remainder is below 2^-31.
  for (std::size_t left = samples; left > 1; --left) std::swap(order[left - 1], order[engine() % left]);
  return order;
}

Trainer::Trainer(const Recipe& recipe, const Images& train, Seat seat)
    : recipe_(recipe),
      train_(train),
      seat_(seat),
      network_(make_network(recipe.model, largest_share(recipe.batch, seat.world), recipe.seed)),
      sgd_(recipe.sgd, network_.values().size()),
      steps_(recipe.epochs * steps_per_epoch(recipe, train.count())),
      labels_(network_.capacity()),
      logit_gradient_(network_.capacity() * network_.output_size()) {}

Score Trainer::forward(const Images& images, std::span<const std::uint32_t> samples, double weight, std::span<float> gradient) {
  const auto labels = std::span(labels_).first(samples.size());
  images.gather(samples, network_.input(samples.size()), labels);
  return cross_entropy(network_.forward(samples.size()), labels, weight, gradient);
}

Score Trainer::gradients(std::span<const std::uint32_t> global_batch, const Network::Ready& ready) {
  const auto mine = share(global_batch, seat_);
  Score score;
  for (std::size_t m = 0; m < recipe_.accumulate; ++m) {
    const auto part = share(mine, {.rank = m, .world = recipe_.accumulate});
    const auto gradient = std::span(logit_gradient_).first(part.size() * network_.output_size());
    score += forward(train_, part, 1.0 / static_cast<double>(global_batch.size()), gradient);
    const bool last = m + 1 == recipe_.accumulate;
    network_.backward(
        part.size(), gradient, last ? ready : [](std::size_t) {}, m == 0 ? Into::overwrite : Into::add);
  }
  return score;
}

Score Trainer::step(std::span<const std::uint32_t> global_batch, GradientSync& sync) {
  const Score score = gradients(global_batch, [&](std::size_t offset) { sync.ready_from(offset); });
  const float rate = learning_rate(recipe_.sgd.rate, next_step_++, steps_);
  for (std::size_t b = 0; b < sync.buckets().size(); ++b) {
    sync.wait(b);
    const Bucket& bucket = sync.buckets()[b];
    sgd_.update(network_.tensors(), {bucket.begin, bucket.end}, rate, network_.gradients(), network_.values());
  }
  return score;
}

Score Trainer::evaluate(const Images& images) {
  std::vector<std::uint32_t> all(images.count());
  std::iota(all.begin(), all.end(), 0U);
  auto mine = share(std::span<const std::uint32_t>(all), seat_);
  Score score;
  while (!mine.empty()) {
    const auto piece = mine.first(std::min(mine.size(), network_.capacity()));
    score += forward(images, piece, 0.0, {});
    mine = mine.subspan(piece.size());
  }
  return score;
}

}  // namespace shoal::train
