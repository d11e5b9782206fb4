// SPDX-License-Identifier: Apache-2.0
#include "algorithms/algorithms.h"

#include "algorithms/all_reduce_recursive_doubling.h"
#include "algorithms/all_reduce_ring.h"

namespace shoal::algorithms {
namespace {

constexpr Algorithm kAlgorithms[] = {
    {"ring", plan::Collective::all_reduce, "reduce-scatter then all-gather around a ring: 2(p-1) steps, 2(p-1)/p n bytes a rank",
     all_reduce_ring},
    {"recursive_doubling", plan::Collective::all_reduce,
     "whole vectors swapped at doubling distances: log2 p steps, n log2 p bytes a rank", all_reduce_recursive_doubling},
};

}  // namespace

std::span<const Algorithm> all() { return kAlgorithms; }

const Algorithm* find(plan::Collective collective, std::string_view name) {
  for (const Algorithm& algorithm : kAlgorithms)
    if (algorithm.collective == collective && algorithm.name == name) return &algorithm;
  return nullptr;
}

}  // namespace shoal::algorithms
