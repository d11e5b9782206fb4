// SPDX-License-Identifier: Apache-2.0
// The table of algorithms: each is a pure function from (world, rank) to the plan of that rank. The checker, the engine, the
// tests and the programs iterate this table. To add one: write a file with its function, add its line in algorithms.cpp.
#pragma once

#include <span>
#include <string_view>

#include "plan/plan.h"

namespace shoal::algorithms {

struct Algorithm {
  std::string_view name;  // what SHOAL_ALGO takes
  plan::Collective collective;
  std::string_view summary;  // one line: idea and cost
  plan::Plan (*build)(World world, Rank rank);
};

std::span<const Algorithm> all();

// Null if there is none of that name for that collective.
const Algorithm* find(plan::Collective collective, std::string_view name);

}  // namespace shoal::algorithms
