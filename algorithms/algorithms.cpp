// SPDX-License-Identifier: Apache-2.0
#include "algorithms/algorithms.h"

#include <algorithm>

namespace shoal::algorithms {
namespace {

constexpr Algorithm kAlgorithms[] = {
#define SHOAL_ALGORITHM(collective, name, function, summary) {#name, plan::Collective::collective, summary, function},
#include "algorithms/table.inc"
#undef SHOAL_ALGORITHM
};

}  // namespace

plan::Plan Algorithm::build(plan::Request request) const {
  request.collective = collective;
  plan::Plan plan = function(request);
  plan.algorithm = name;
  plan.collective = collective;
  plan.world = request.world;
  plan.rank = request.rank;
  plan.root = request.root;
  return plan;
}

std::int32_t Algorithm::widest(plan::Request request) const {
  std::int32_t most = 1;
  for (std::int32_t r = 0; r < request.world.value; ++r) {
    request.rank = {r};
    most = std::max(most, plan::widest(build(request)));
  }
  return most;
}

std::span<const Algorithm> all() { return kAlgorithms; }

const Algorithm* find(plan::Collective collective, std::string_view name) {
  for (const Algorithm& algorithm : kAlgorithms)
    if (algorithm.collective == collective && algorithm.name == name) return &algorithm;
  return nullptr;
}

}  // namespace shoal::algorithms
