// SPDX-License-Identifier: Apache-2.0
// All ranks' plans of one algorithm.
#pragma once

#include <vector>

#include "algorithms/algorithms.h"

inline std::vector<shoal::plan::Plan> plans_of(const shoal::algorithms::Algorithm& algorithm, std::int32_t world) {
  std::vector<shoal::plan::Plan> plans;
  for (std::int32_t r = 0; r < world; ++r) plans.push_back(algorithm.build({world}, {r}));
  return plans;
}
