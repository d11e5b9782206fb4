// SPDX-License-Identifier: Apache-2.0
#include "topo/bound/ring_order.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <random>

using namespace shoal::topo;

namespace {

RingCost best_of_all(const CostMatrix& costs) {
  std::vector<int> order(costs.size());
  std::iota(order.begin(), order.end(), 0);
  RingCost best = ring_cost(costs, order);
  while (std::next_permutation(order.begin() + 1, order.end())) best = std::min(best, ring_cost(costs, order));
  return best;
}

CostMatrix random_costs(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> cost(1, 10);
  CostMatrix costs(n, std::vector<double>(n));
  for (auto& row : costs)
    for (double& each : row) each = cost(random);
  return costs;
}

}  // namespace

TEST_CASE("ring order: two sites that alternate in the order of ranks are crossed once each way") {
  CostMatrix costs(4, std::vector<double>(4, 10));
  costs[0][2] = costs[2][0] = costs[1][3] = costs[3][1] = 1;
  CHECK(ring_cost(costs, {0, 1, 2, 3}).sum == 40);
  const std::vector<int> order = ring_order(costs);
  CHECK(order.front() == 0);
  CHECK(ring_cost(costs, order).sum == 22);
}

TEST_CASE("ring order: one link that is slow both ways is avoided; one that is slow one way only in that direction") {
  CostMatrix costs(4, std::vector<double>(4, 1));
  costs[1][2] = costs[2][1] = 100;
  CHECK(ring_cost(costs, ring_order(costs)).slowest == 1);
  CostMatrix ring(3, std::vector<double>(3, 1));
  ring[0][1] = 100;  // of the two rings of three ranks, the other one
  CHECK(ring_order(ring) == std::vector<int>{0, 2, 1});
}

TEST_CASE("ring order: as good as trying all, and never worse than the order of ranks") {
  for (unsigned seed = 0; seed < 40; ++seed) {
    INFO(seed);
    const CostMatrix costs = random_costs(4 + seed % 4, seed);
    const RingCost found = ring_cost(costs, ring_order(costs)), best = best_of_all(costs);
    CHECK(found.slowest <= 1.25 * best.slowest);
    CHECK_FALSE(found < best);
  }
  const CostMatrix large = random_costs(24, 7);
  std::vector<int> plain(24), order = ring_order(large);
  std::iota(plain.begin(), plain.end(), 0);
  CHECK(ring_cost(large, order) < ring_cost(large, plain));
  CHECK(order == ring_order(large));
  std::sort(order.begin(), order.end());
  CHECK(order == plain);
}

TEST_CASE("ring order: nothing to choose") {
  CHECK(ring_order({}).empty());
  CHECK(ring_order({{0}}) == std::vector<int>{0});
  CHECK(ring_order({{0, 1}, {1, 0}}) == std::vector<int>{0, 1});
  const CostMatrix alike(5, std::vector<double>(5, 3));
  CHECK(ring_order(alike) == std::vector<int>{0, 1, 2, 3, 4});
}
