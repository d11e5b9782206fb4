// SPDX-License-Identifier: Apache-2.0
// One rank of a run in which ranks take steps of their own: what moves the parameters at each iteration. A network on a shard of
// Fashion-MNIST, or a stand-in that sleeps. Belongs to one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "train/image_model.h"
#include "train/nn/optimizer.h"
#include "train/parallel/share.h"

namespace shoal::train {

class LocalWorker {
 public:
  virtual ~LocalWorker() = default;
  virtual std::span<float> parameters() = 0;
  // Iteration t, from 1, on this rank's own samples; the score before the update.
  virtual Score step(std::size_t t) = 0;
};

struct ReplicaOptions {
  std::string model = "mlp";
  std::size_t batch = 32;      // samples of one rank's step
  std::size_t iterations = 0;  // of the run, for the schedule of the rate
  std::uint64_t seed = 1;      // of the parameters, the same on all ranks, and of orders
  Optimizer optimizer;
};

class Replica final : public LocalWorker {
 public:
  // `shard`: indices into `train`, at least one; `train` outlives this.
  Replica(const ReplicaOptions& options, const Images& train, std::vector<std::uint32_t> shard, Seat seat);

  std::span<float> parameters() override { return model_.network().values(); }
  Score step(std::size_t t) override;

  // Of this rank's share of `images`, with the parameters as they are.
  Score evaluate(const Images& images) { return model_.evaluate(images, seat_); }

 private:
  void next_batch();
  void update(std::size_t t);

  ReplicaOptions options_;
  const Images& train_;
  std::vector<std::uint32_t> shard_;
  Seat seat_;
  ImageModel model_;
  std::vector<float> first_, second_;  // moments of the optimiser: a rank's own, never averaged
  std::vector<std::uint32_t> order_;   // of the shard, in this pass
  std::size_t at_ = 0, pass_ = 0;
  std::vector<std::uint32_t> batch_;
};

// Takes its time without the processor, so that more ranks than processors compute side by side, and then moves each parameter by
// something that depends on rank and iteration: whole numbers, so that sums are exact.
class StandIn final : public LocalWorker {
 public:
  StandIn(std::size_t parameters, std::chrono::nanoseconds time, Seat seat) : values_(parameters), time_(time), seat_(seat) {}

  std::span<float> parameters() override { return values_; }
  Score step(std::size_t t) override;
  // What one iteration of a rank adds to every parameter.
  static float update(Seat seat, std::size_t t) { return static_cast<float>((seat.rank + 1) * (t % 4) % 8); }

 private:
  std::vector<float> values_;
  std::chrono::nanoseconds time_;
  Seat seat_;
};

}  // namespace shoal::train
