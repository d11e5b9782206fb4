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
      model_(recipe.model, largest_share(recipe.batch, seat.world), recipe.seed),
      sgd_(recipe.sgd, network().values().size()),
      steps_(recipe.epochs * steps_per_epoch(recipe, train.count())) {}

Score Trainer::gradients(std::span<const std::uint32_t> global_batch, const Network::Ready& ready) {
  const auto mine = share(global_batch, seat_);
  Score score;
  for (std::size_t m = 0; m < recipe_.accumulate; ++m) {
    const auto part = share(mine, {.rank = m, .world = recipe_.accumulate});
    const bool last = m + 1 == recipe_.accumulate;
    score += model_.gradients(
        train_, part, 1.0 / static_cast<double>(global_batch.size()), last ? ready : [](std::size_t) {},
        m == 0 ? Into::overwrite : Into::add);
  }
  return score;
}

Score Trainer::step(std::span<const std::uint32_t> global_batch, GradientSync& sync) {
  const Score score = gradients(global_batch, [&](std::size_t offset) { sync.ready_from(offset); });
  const float rate = learning_rate(recipe_.sgd.rate, next_step_++, steps_);
  for (std::size_t b = 0; b < sync.buckets().size(); ++b) {
    sync.wait(b);
    const Bucket& bucket = sync.buckets()[b];
    sgd_.update(network().tensors(), {bucket.begin, bucket.end}, rate, network().gradients(), network().values());
  }
  return score;
}

}  // namespace shoal::train
