// SPDX-License-Identifier: Apache-2.0
// One rank of a training run: its network, its optimiser, its share of every global batch. All that makes the run what it is
// stands in the Recipe; two trainers with the same recipe and data differ only in how they cut the batches. Belongs to one
// thread.
#pragma once

#include <string>

#include "train/image_model.h"
#include "train/nn/sgd.h"
#include "train/parallel/gradient_sync.h"
#include "train/parallel/share.h"

namespace shoal::train {

struct Recipe {
  std::string model = "mlp";
  std::size_t batch = 128;  // samples of all ranks together
  std::size_t epochs = 5;
  std::uint64_t seed = 1;
  std::size_t accumulate = 1;  // micro-batches that a rank's share is computed in
  SgdOptions sgd;
};

// Steps of one pass over the samples; the last batch may be short.
std::size_t steps_per_epoch(const Recipe& recipe, std::size_t samples);

// The order of the samples in an epoch: a permutation that depends on seed and epoch only.
std::vector<std::uint32_t> shuffled(std::size_t samples, std::uint64_t seed, std::size_t epoch);

// The samples of step `step` of an epoch, from 0.
inline std::span<const std::uint32_t> global_batch(std::span<const std::uint32_t> order, std::size_t batch, std::size_t step) {
  return order.subspan(step * batch, std::min(batch, order.size() - step * batch));
}

class Trainer {
 public:
  // `train` must outlive the trainer. `seat` is this rank's place.
  Trainer(const Recipe& recipe, const Images& train, Seat seat);

  Network& network() { return model_.network(); }
  std::size_t steps() const { return steps_; }  // of the whole run

  // One step on a global batch; returns the score of this rank's share, before the update. `sync` has the network's gradients.
  Score step(std::span<const std::uint32_t> global_batch, GradientSync& sync);
  // The gradients of this rank's share, and its score. `ready`: as Network::backward's, of the last micro-batch.
  Score gradients(std::span<const std::uint32_t> global_batch, const Network::Ready& ready);

  // The score of this rank's share of `images`, without training.
  Score evaluate(const Images& images) { return model_.evaluate(images, seat_); }

 private:
  Recipe recipe_;
  const Images& train_;
  Seat seat_;
  ImageModel model_;
  Sgd sgd_;
  std::size_t steps_;
  std::size_t next_step_ = 0;
};

}  // namespace shoal::train
