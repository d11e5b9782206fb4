// SPDX-License-Identifier: Apache-2.0
// The table of algorithms: each is a pure function from a request to the plan of one rank. The checker, the simulator, the
// engine, the tests and the programs iterate this table. To add one: write a file with its function, add its line in table.inc.
#pragma once

#include <span>
#include <string_view>

#include "plan/plan.h"

namespace shoal::algorithms {

#define SHOAL_ALGORITHM(collective, name, function, summary) plan::Plan function(const plan::Request& request);
#include "algorithms/table.inc"
#undef SHOAL_ALGORITHM

struct Algorithm {
  std::string_view name;  // what SHOAL_ALGO takes
  plan::Collective collective;
  std::string_view summary;  // one line: idea and cost
  plan::Plan (*function)(const plan::Request& request);

  // The plan of one rank, with the header fields that are not the algorithm's to choose filled in.
  plan::Plan build(plan::Request request) const;
  // Most chunks in one message of any rank, at least 1: builds the plans of all ranks in turn.
  std::int32_t widest(plan::Request request) const;
};

std::span<const Algorithm> all();

// Null if there is none of that name for that collective.
const Algorithm* find(plan::Collective collective, std::string_view name);

}  // namespace shoal::algorithms
