// SPDX-License-Identifier: Apache-2.0
// Optimisers as functions of one piece of the parameters at a time, so that any split of the parameters (whole, sharded, by
// bucket) takes the same steps: SGD with momentum, Adam (Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019). The moments
// belong to the caller. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace shoal::train {

enum class Rule : std::uint8_t { sgd, adam, adamw };

struct Optimizer {
  Rule rule = Rule::adamw;
  double rate = 1e-3;  // the peak of the schedule
  double momentum = 0.9;
  double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8;
  double weight_decay = 0;  // added to the gradient (sgd, adam) or taken from the value (adamw)

  std::size_t moments() const { return rule == Rule::sgd ? 1 : 2; }  // values of state a parameter

  // The step'th update, from 0, at `rate`. All spans have one length; `second` is empty for sgd. `decays`: biases and gains do
  // not.
  void update(std::size_t step, float rate, bool decays, std::span<const float> gradient, std::span<float> values,
              std::span<float> first, std::span<float> second) const;
};

// Clipping by the global norm (Pascanu et al. 2013): what all gradients are multiplied by, so that their norm is `clip` at most.
// 1 for a clip of 0. `squares`: the sum of their squares.
double sum_of_squares(std::span<const float> values);
float clip_factor(double squares, double clip);
void scale(float factor, std::span<float> values);  // leaves every bit alone if it is 1

}  // namespace shoal::train
