// SPDX-License-Identifier: Apache-2.0
// Stochastic gradient descent with momentum: v = momentum v + (g + decay w), w -= rate v. Biases do not decay. Applied to a range
// of the arena at a time, so that one bucket's parameters can move while the next bucket is still on the wire. Owned by its
// trainer; one thread at a time.
#pragma once

#include <span>
#include <vector>

#include "train/nn/tensor.h"

namespace shoal::train {

struct SgdOptions {
  double rate = 0.1;  // the peak of the schedule
  double momentum = 0.9;
  double weight_decay = 0;
};

// Linear warm-up over the first twentieth of the run, then half a cosine down to zero. 0 <= step < steps.
float learning_rate(double peak, std::size_t step, std::size_t steps);

class Sgd {
 public:
  Sgd(SgdOptions options, std::size_t parameters) : options_(options), velocity_(parameters) {}

  // For the tensors that start in [begin, end), elements of the arena.
  struct Range {
    std::size_t begin;
    std::size_t end;
  };
  void update(std::span<const Tensor> tensors, Range range, float rate, std::span<const float> gradients,
              std::span<float> values);

 private:
  SgdOptions options_;
  std::vector<float> velocity_;
};

}  // namespace shoal::train
