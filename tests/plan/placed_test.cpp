// SPDX-License-Identifier: Apache-2.0
#include "plan/placed.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

#include "algorithms/algorithms.h"
#include "plan/checker.h"

using namespace shoal;
using namespace shoal::plan;

namespace {

std::vector<Plan> all_placed(const algorithms::Algorithm& algorithm, World world, Rank root, std::span<const Rank> order) {
  std::vector<Plan> plans;
  for (std::int32_t r = 0; r < world.value; ++r)
    plans.push_back(build_placed([&](const Request& request) { return algorithm.build(request); },
                                 {.collective = algorithm.collective, .world = world, .rank = {r}, .root = root}, order));
  return plans;
}

std::vector<Rank> shuffled(World world, unsigned seed) {
  std::vector<Rank> order;
  for (std::int32_t r = 0; r < world.value; ++r) order.push_back({r});
  std::shuffle(order.begin(), order.end(), std::mt19937(seed));
  return order;
}

// The ranks that rank 0's message passes, by the first peer that each sends to.
std::vector<Rank> way_round(const std::vector<Plan>& plans) {
  std::vector<Rank> way;
  Rank at{0};
  for (std::size_t i = 0; i < plans.size(); ++i) {
    way.push_back(at);
    const Plan& plan = plans[static_cast<std::size_t>(at.value)];
    for (const Loop& loop : plan.lanes.front().loops)
      for (const Step& step : loop.steps)
        if (sends(step.op)) at = {step.to.at(0)};
  }
  return way;
}

}  // namespace

TEST_CASE("placed: every algorithm of every collective is still right in any order, for any root") {
  for (const algorithms::Algorithm& algorithm : algorithms::all())
    for (const std::int32_t world : {2, 3, 4, 5, 8})
      for (const unsigned seed : {1U, 2U}) {
        const std::vector<Rank> order = shuffled({world}, seed);
        const Rank root{has_root(algorithm.collective) ? static_cast<std::int32_t>(seed) % world : 0};
        const std::vector<Plan> plans = all_placed(algorithm, {world}, root, order);
        if (!plans.front().refusal.empty()) continue;
        CAPTURE(algorithm.name, name_of(algorithm.collective), world, seed);
        const Status right = check_all_modes(plans);
        INFO(right.text());
        CHECK(right.is_ok());
      }
}

TEST_CASE("placed: a ring passes the ranks in the order; a plan that does not go round stays as it is") {
  const std::vector<Rank> order = {{0}, {2}, {3}, {1}};
  CHECK(way_round(all_placed(*algorithms::find(Collective::all_reduce, "ring"), {4}, {0}, order)) == order);
  const algorithms::Algorithm& other = *algorithms::find(Collective::all_reduce, "recursive_doubling");
  for (std::int32_t r = 0; r < 4; ++r) {
    const Plan placed = all_placed(other, {4}, {0}, order)[static_cast<std::size_t>(r)],
               plain = other.build({.world = {4}, .rank = {r}});
    REQUIRE(placed.lanes.size() == plain.lanes.size());
    for_each_step(placed.lanes[0], [&, at = 0](const Step& step, std::int32_t i) mutable {
      int seen = 0;
      for_each_step(plain.lanes[0], [&](const Step& same, std::int32_t j) {
        if (seen++ == at) CHECK(describe(step, i) == describe(same, j));
      });
      ++at;
    });
  }
}

TEST_CASE("placed: chains from a root in the middle of the order, and blocks, which keep their ranks") {
  const std::vector<Rank> order = {{3}, {1}, {4}, {0}, {2}};
  for (const char* name : {"chain"})
    for (const Collective collective : {Collective::broadcast, Collective::reduce}) {
      const auto plans = all_placed(*algorithms::find(collective, name), {5}, {4}, order);
      CHECK(plans[4].root == Rank{4});
      CHECK(check_all_modes(plans).is_ok());
    }
  const algorithms::Algorithm& gather = *algorithms::find(Collective::all_gather, "ring");
  const std::vector<Rank> plain = {{0}, {1}, {2}, {3}, {4}};
  CHECK(way_round(all_placed(gather, {5}, {0}, order)) == plain);
}
