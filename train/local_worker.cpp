// SPDX-License-Identifier: Apache-2.0
#include "train/local_worker.h"

#include <thread>
#include <utility>

#include "train/nn/sgd.h"
#include "train/trainer.h"

namespace shoal::train {

Replica::Replica(const ReplicaOptions& options, const Images& train, std::vector<std::uint32_t> shard, Seat seat)
    : options_(options),
      train_(train),
      shard_(std::move(shard)),
      seat_(seat),
      model_(options.model, options.batch, options.seed),
      first_(model_.network().values().size()),
      second_(options.optimizer.moments() > 1 ? first_.size() : 0),
      at_(shard_.size()) {}

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

Score Replica::step(std::size_t t) {
  next_batch();
  const Score score = model_.gradients(train_, batch_, 1.0 / static_cast<double>(batch_.size()), [](std::size_t) {});
  update(t);
  return score;
}

void Replica::update(std::size_t t) {
  const float rate = learning_rate(options_.optimizer.rate, t - 1, options_.iterations);
  for (const Tensor& tensor : model_.network().tensors()) {
    const auto of = [&](std::span<float> all) { return all.empty() ? all : all.subspan(tensor.offset, tensor.count); };
    options_.optimizer.update(t - 1, rate, tensor.spec.fan_in > 0, of(model_.network().gradients()),
                              of(model_.network().values()), of(first_), of(second_));
  }
}

Score StandIn::step(std::size_t t) {
  std::this_thread::sleep_for(time_);
  for (float& each : values_) each += update(seat_, t);
  return {};
}

}  // namespace shoal::train
