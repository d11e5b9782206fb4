// SPDX-License-Identifier: Apache-2.0
#include "train/local_worker.h"

#include <algorithm>
#include <numeric>
#include <thread>
#include <utility>

#include "train/nn/models.h"
#include "train/nn/sgd.h"
#include "train/trainer.h"

namespace shoal::train {

Replica::Replica(const ReplicaOptions& options, const Images& train, std::vector<std::uint32_t> shard, Seat seat)
    : options_(options),
      train_(train),
      shard_(std::move(shard)),
      seat_(seat),
      network_(make_network(options.model, options.batch, options.seed)),
      first_(network_.values().size()),
      second_(options.optimizer.moments() > 1 ? first_.size() : 0),
      at_(shard_.size()),
      labels_(options.batch),
      logit_gradient_(options.batch * network_.output_size()) {}

// The next samples of the shard; the pass after it begins where one ends.
void Replica::next_batch() {
  batch_.clear();
  while (batch_.size() < options_.batch) {
    if (at_ == shard_.size()) {
      order_ = shuffled(shard_.size(), options_.seed + 7919 * (seat_.rank + 1), ++pass_);
      at_ = 0;
    }
    batch_.push_back(shard_[order_[at_++]]);
  }
}

Score Replica::forward(const Images& images, std::span<const std::uint32_t> samples, double weight, std::span<float> gradient) {
  const auto labels = std::span(labels_).first(samples.size());
  images.gather(samples, network_.input(samples.size()), labels);
  return cross_entropy(network_.forward(samples.size()), labels, weight, gradient);
}

Score Replica::step(std::size_t t) {
  next_batch();
  const Score score = forward(train_, batch_, 1.0 / static_cast<double>(batch_.size()), logit_gradient_);
  network_.backward(batch_.size(), logit_gradient_, [](std::size_t) {});
  update(t);
  return score;
}

void Replica::update(std::size_t t) {
  const float rate = learning_rate(options_.optimizer.rate, t - 1, options_.iterations);
  for (const Tensor& tensor : network_.tensors()) {
    const auto of = [&](std::span<float> all) { return all.empty() ? all : all.subspan(tensor.offset, tensor.count); };
    options_.optimizer.update(t - 1, rate, tensor.spec.fan_in > 0, of(network_.gradients()), of(network_.values()), of(first_),
                              of(second_));
  }
}

Score Replica::evaluate(const Images& images) {
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

Score StandIn::step(std::size_t t) {
  std::this_thread::sleep_for(time_);
  for (float& each : values_) each += update(seat_, t);
  return {};
}

}  // namespace shoal::train
