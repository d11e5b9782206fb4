// SPDX-License-Identifier: Apache-2.0
// The table of algorithms as plans and as subjects of sweeps.
#pragma once

#include <vector>

#include "algorithms/algorithms.h"
#include "plan/subject.h"

// All ranks' plans of one algorithm.
inline std::vector<shoal::plan::Plan> plans_of(const shoal::algorithms::Algorithm& algorithm, std::int32_t world,
                                               std::int32_t root = 0, std::int32_t group = 0) {
  std::vector<shoal::plan::Plan> plans;
  for (std::int32_t r = 0; r < world; ++r)
    plans.push_back(algorithm.build({.world = {world}, .rank = {r}, .root = {root}, .group = group}));
  return plans;
}

inline std::vector<shoal::plan::Subject> subjects() {
  std::vector<shoal::plan::Subject> all;
  for (const shoal::algorithms::Algorithm& algorithm : shoal::algorithms::all())
    all.push_back({algorithm.name, algorithm.collective,
                   [&algorithm](const shoal::plan::Request& request) { return algorithm.build(request); }});
  return all;
}
