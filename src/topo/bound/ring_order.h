// SPDX-License-Identifier: Apache-2.0
// In which order ranks make the quickest ring, where links are unlike. Pure and deterministic: all ranks that have the same
// matrix find the same order.
#pragma once

#include <vector>

namespace shoal::topo {

// Seconds a byte from row to column; square, the diagonal is not looked at. Infinity: no way.
using CostMatrix = std::vector<std::vector<double>>;

// What a ring costs: a pipelined ring is as quick as its slowest link; of equal ones the sum decides.
struct RingCost {
  double slowest = 0, sum = 0;
  friend bool operator<(const RingCost& a, const RingCost& b) {
    return a.slowest < b.slowest || (a.slowest == b.slowest && a.sum < b.sum);
  }
};
RingCost ring_cost(const CostMatrix& costs, const std::vector<int>& order);

// A travelling salesman's tour over one-way costs, beginning with rank 0; never worse than the order of ranks. Up to 12 ranks the
// best of all; beyond, nearest neighbours from every rank, then pieces are moved and turned round as long as that helps, within a
// bound of steps, not of time: milliseconds at 64 ranks, some hundred at 1024.
std::vector<int> ring_order(const CostMatrix& costs);

}  // namespace shoal::topo
