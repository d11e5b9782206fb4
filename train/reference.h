// SPDX-License-Identifier: Apache-2.0
// The run that a parallel run must agree with: one process, whole batches, no communication. A pure function of its arguments.
#pragma once

#include <string>

#include "train/trainer.h"

namespace shoal::train {

struct Difference {
  double relative_l2 = 0;  // |parallel - alone| / |alone| of the worst tensor; NaN if a value is
  std::string tensor;
};

// Trains `recipe` alone for `epochs` epochs and compares its parameters with those of `parallel`.
Difference difference_from_run_alone(const Recipe& recipe, const Images& train, std::size_t epochs, Network& parallel);

// The worst tensor of two networks of the same model.
Difference largest_difference(Network& parallel, Network& alone);

}  // namespace shoal::train
