// SPDX-License-Identifier: Apache-2.0
#include "topo/bound/ring_order.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>
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

// No ring's slowest link is quicker than the quickest way out of, or into, any one rank.
double least_slowest(const CostMatrix& costs) {
  double bound = 0;
  for (std::size_t a = 0; a < costs.size(); ++a) {
    double out = 1e300, in = 1e300;
    for (std::size_t b = 0; b < costs.size(); ++b)
      if (a != b) out = std::min(out, costs[a][b]), in = std::min(in, costs[b][a]);
    bound = std::max({bound, out, in});
  }
  return bound;
}

// Each rank at one of the sites, dealt out by chance: 1 within, 10 between.
CostMatrix at_sites(std::size_t n, unsigned sites, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<unsigned> site(n);
  for (std::size_t r = 0; r < n; ++r) site[r] = r < sites ? static_cast<unsigned>(r) : static_cast<unsigned>(random()) % sites;
  CostMatrix costs(n, std::vector<double>(n));
  for (std::size_t a = 0; a < n; ++a)
    for (std::size_t b = 0; b < n; ++b) costs[a][b] = site[a] == site[b] ? 1 : 10;
  return costs;
}

bool has_all(std::vector<int> order, std::size_t n) {
  std::sort(order.begin(), order.end());
  std::vector<int> plain(n);
  std::iota(plain.begin(), plain.end(), 0);
  return order == plain;
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
    const CostMatrix costs = random_costs(3 + seed % 6, seed);
    const RingCost found = ring_cost(costs, ring_order(costs)), best = best_of_all(costs);
    CHECK(found.slowest == best.slowest);
    CHECK(found.sum == Approx(best.sum));
  }
  const CostMatrix large = random_costs(24, 7);
  std::vector<int> plain(24), order = ring_order(large);
  std::iota(plain.begin(), plain.end(), 0);
  CHECK(ring_cost(large, order) < ring_cost(large, plain));
  CHECK(order == ring_order(large));
  std::sort(order.begin(), order.end());
  CHECK(order == plain);
}

TEST_CASE("ring order: beyond what is tried as a whole, each site is entered once, and no link is much slower than one must be") {
  for (const std::size_t n : {12U, 13U, 31U, 64U})
    for (const unsigned sites : {2U, 3U, 5U}) {
      CAPTURE(n, sites);
      const std::vector<int> order = ring_order(at_sites(n, sites, 3));
      REQUIRE(has_all(order, n));
      CHECK(order.front() == 0);
      CHECK(ring_cost(at_sites(n, sites, 3), order).sum == static_cast<double>(n - sites) + 10. * sites);
    }
  for (const std::size_t n : {13U, 20U, 64U, 100U}) {
    CAPTURE(n);
    const CostMatrix costs = random_costs(n, 5);
    const std::vector<int> order = ring_order(costs);
    REQUIRE(has_all(order, n));
    CHECK(ring_cost(costs, order).slowest <= 1.6 * least_slowest(costs));
  }
}

TEST_CASE("ring order: ways that there are not are taken only where there is no other ring") {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  for (const std::size_t n : {5U, 20U}) {
    CAPTURE(n);
    CostMatrix costs(n, std::vector<double>(n, kNone));  // one ring alone, r to r + 3
    for (std::size_t r = 0; r < n; ++r) costs[r][(r + 3) % n] = 1;
    const std::vector<int> order = ring_order(costs);
    REQUIRE(has_all(order, n));
    CHECK(ring_cost(costs, order).slowest == 1);
    for (auto& row : costs) row[1] = kNone;  // rank 1 cannot be reached
    CHECK(has_all(ring_order(costs), n));
  }
}

TEST_CASE("ring order: hundreds of ranks, cut off at the bound of steps, are still a ring, and the same one each time") {
  const CostMatrix costs = random_costs(300, 11);
  const std::vector<int> order = ring_order(costs);
  CHECK(has_all(order, 300));
  CHECK(order == ring_order(costs));
  std::vector<int> plain(300);
  std::iota(plain.begin(), plain.end(), 0);
  CHECK(ring_cost(costs, order).slowest < 0.4 * ring_cost(costs, plain).slowest);
}

TEST_CASE("ring order: nothing to choose") {
  CHECK(ring_order({}).empty());
  CHECK(ring_order({{0}}) == std::vector<int>{0});
  CHECK(ring_order({{0, 1}, {1, 0}}) == std::vector<int>{0, 1});
  const CostMatrix alike(5, std::vector<double>(5, 3));
  CHECK(ring_order(alike) == std::vector<int>{0, 1, 2, 3, 4});
}
