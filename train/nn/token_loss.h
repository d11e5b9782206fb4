// SPDX-License-Identifier: Apache-2.0
// Cross entropy over a vocabulary of which this rank may hold only a range: the three numbers of a token that must be combined
// over the ranks (largest logit, sum of exp, the target's logit), and what follows from them. With the whole vocabulary here the
// combining steps have nothing to do. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace shoal::train {

using Token = std::uint8_t;                    // a byte of text
inline constexpr std::int32_t kNoTarget = -1;  // a token whose prediction does not count: padding, the end of the text

struct TokenLoss {
  std::size_t first = 0;  // of the vocabulary's range that is here
  std::size_t count = 0;

  // logits (tokens, count); each step fills one value a token, to be combined over the ranks (by max, sum, sum) before the next.
  void largest(std::span<const float> logits, std::span<float> largest) const;
  // Overwrites logits by exp(logit - largest).
  void exponentials(std::span<float> logits, std::span<const float> largest, std::span<const std::int32_t> targets,
                    std::span<float> sums, std::span<float> target_logits) const;
  // The sum of the tokens' losses, natural logarithm; pure in what is the same on all ranks.
  static double loss(std::span<const std::int32_t> targets, std::span<const float> largest, std::span<const float> sums,
                     std::span<const float> target_logits);
  // Turns exponentials into `weight` times the derivative of the summed loss by the logits.
  void gradient(std::span<float> exponentials, std::span<const std::int32_t> targets, std::span<const float> sums,
                float weight) const;
};

}  // namespace shoal::train
