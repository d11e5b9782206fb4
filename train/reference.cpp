// SPDX-License-Identifier: Apache-2.0
#include "train/reference.h"

#include <cmath>

namespace shoal::train {
namespace {

double relative_l2(std::span<const float> parallel, std::span<const float> alone) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < alone.size(); ++i) {
    const double a = static_cast<double>(alone[i]), d = static_cast<double>(parallel[i]) - a;
    difference += d * d;
    size += a * a;
  }
  return difference == 0 ? 0.0 : std::sqrt(difference / size);
}

}  // namespace

Difference largest_difference(Network& parallel, Network& alone) {
  Difference worst;
  for (const Tensor& tensor : alone.tensors()) {
    const double relative =
        relative_l2(parallel.values().subspan(tensor.offset, tensor.count), alone.values().subspan(tensor.offset, tensor.count));
    const bool worse = !(relative <= worst.relative_l2);  // also when it is not a number, which nothing is worse than
    if (worst.tensor.empty() || (worse && !std::isnan(worst.relative_l2)))
      worst = {.relative_l2 = relative, .tensor = tensor.spec.name};
  }
  return worst;
}

Difference difference_from_run_alone(const Recipe& recipe, const Images& train, std::size_t epochs, Network& parallel) {
  Trainer alone(recipe, train, Seat{});
  Alone nobody(alone.network().values().size());
  for (std::size_t epoch = 1; epoch <= epochs; ++epoch) {
    const auto order = shuffled(train.count(), recipe.seed, epoch);
    for (std::size_t step = 0; step < steps_per_epoch(recipe, order.size()); ++step) {
      alone.step(global_batch(order, recipe.batch, step), nobody);
    }
  }
  return largest_difference(parallel, alone.network());
}

}  // namespace shoal::train
