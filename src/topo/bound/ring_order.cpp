// SPDX-License-Identifier: Apache-2.0
#include "topo/bound/ring_order.h"

#include <algorithm>
#include <numeric>

namespace shoal::topo {
namespace {

using Order = std::vector<int>;

double cost(const CostMatrix& costs, int from, int to) {
  return costs[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
}

Order nearest_neighbours(const CostMatrix& costs, int start) {
  Order order = {start};
  std::vector<bool> used(costs.size());
  used[static_cast<std::size_t>(start)] = true;
  while (order.size() < costs.size()) {
    int best = -1;
    for (int next = 0; next < static_cast<int>(costs.size()); ++next)
      if (!used[static_cast<std::size_t>(next)] &&
          (best < 0 || cost(costs, order.back(), next) < cost(costs, order.back(), best)))
        best = next;
    used[static_cast<std::size_t>(best)] = true;
    order.push_back(best);
  }
  return order;
}

// One pass over all pieces and places (Or's moves of up to n ranks, each also turned round). True if something helped.
bool improve(const CostMatrix& costs, Order& order, RingCost& best) {
  const std::size_t n = order.size();
  for (std::size_t begin = 0; begin < n; ++begin)
    for (std::size_t length = 1; begin + length <= n; ++length) {
      Order rest(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(begin)),
          piece(order.begin() + static_cast<std::ptrdiff_t>(begin), order.begin() + static_cast<std::ptrdiff_t>(begin + length));
      rest.insert(rest.end(), order.begin() + static_cast<std::ptrdiff_t>(begin + length), order.end());
      for (const bool turned : {false, true}) {
        if (turned) std::reverse(piece.begin(), piece.end());
        for (std::size_t at = 0; at <= rest.size(); ++at) {
          Order candidate = rest;
          candidate.insert(candidate.begin() + static_cast<std::ptrdiff_t>(at), piece.begin(), piece.end());
          const RingCost now = ring_cost(costs, candidate);
          if (!(now < best)) continue;
          best = now;
          order = std::move(candidate);
          return true;
        }
      }
    }
  return false;
}

}  // namespace

RingCost ring_cost(const CostMatrix& costs, const Order& order) {
  RingCost total;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const double link = cost(costs, order[i], order[(i + 1) % order.size()]);
    total.slowest = std::max(total.slowest, link);
    total.sum += link;
  }
  return total;
}

Order ring_order(const CostMatrix& costs) {
  Order best(costs.size());
  std::iota(best.begin(), best.end(), 0);
  if (costs.size() < 3) return best;
  RingCost least = ring_cost(costs, best);
  for (int start = 0; start < static_cast<int>(costs.size()); ++start) {
    Order order = nearest_neighbours(costs, start);
    if (const RingCost now = ring_cost(costs, order); now < least) {
      least = now;
      best = std::move(order);
    }
  }
  constexpr int kMostMoves = 256;  // a bound on the time, far from what is needed
  for (int move = 0; move < kMostMoves && improve(costs, best, least); ++move) continue;
  std::rotate(best.begin(), std::find(best.begin(), best.end(), 0), best.end());
  return best;
}

}  // namespace shoal::topo
