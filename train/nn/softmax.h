// SPDX-License-Identifier: Apache-2.0
// Softmax and cross entropy, the end of every classifier. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace shoal::train {

// Sums over samples, not means: sums of shares of a batch add up to the batch's.
struct Score {
  double loss = 0;           // cross entropy, natural logarithm
  std::int64_t correct = 0;  // samples whose largest logit is their label's
  std::int64_t samples = 0;

  Score& operator+=(const Score& other);
};

// logits: (samples, classes); labels: (samples), each below classes. Overwrites `gradient` with `weight` times the derivative
// of the summed loss by the logits, softmax - one-hot; an empty `gradient` is not written. The weight of a sample of a batch is
// 1 / batch: then the gradients of all samples, of all ranks, add up to those of the batch's mean loss.
Score cross_entropy(std::span<const float> logits, std::span<const std::uint8_t> labels, double weight,
                    std::span<float> gradient);

}  // namespace shoal::train
