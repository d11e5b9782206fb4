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
    for (const std::int32_t world : {2, 3, 4, 5, 6, 7, 8, 9})
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

TEST_CASE("placed: chains from a root in the middle of the order") {
  const std::vector<Rank> order = {{3}, {1}, {4}, {0}, {2}};
  for (const Collective collective : {Collective::broadcast, Collective::reduce}) {
    const auto plans = all_placed(*algorithms::find(collective, "chain"), {5}, {4}, order);
    CHECK(plans[4].root == Rank{4});
    CHECK(check_all_modes(plans).is_ok());
  }
}

TEST_CASE("placed: rings of blocks pass the ranks in the order, whose blocks they move") {
  const std::vector<Rank> order = {{0}, {3}, {1}, {4}, {2}};
  for (const Collective collective : {Collective::all_gather, Collective::all_gather_v, Collective::reduce_scatter}) {
    const auto plans = all_placed(*algorithms::find(collective, "ring"), {5}, {0}, order);
    CAPTURE(name_of(collective));
    CHECK(way_round(plans) == order);
    CHECK(check_all_modes(plans).is_ok());
  }
  // Rank 3 follows rank 0: it sends its own block, then what its neighbour had, then what the rank before that had.
  const auto gather = all_placed(*algorithms::find(Collective::all_gather, "ring"), {5}, {0}, order);
  std::vector<std::int32_t> sent;
  for_each_step(gather[3].lanes.front(), [&](const Step& step, std::int32_t i) {
    if (sends(step.op)) sent.push_back((step.op == Op::send ? step.source : step.target).at(0, i));
  });
  CHECK(sent == std::vector<std::int32_t>{3, 0, 2, 4});
  const auto both_ways = all_placed(*algorithms::find(Collective::all_gather, "two_rings"), {5}, {0}, order);
  CHECK(both_ways[0].lanes[0].loops.front().steps.front().to == fixed(3));
  CHECK(both_ways[0].lanes[1].loops.front().steps.front().to == fixed(2));
}

TEST_CASE("placed: blocks that travel beside each other stay where they are") {
  const std::vector<Rank> order = {{0}, {2}, {1}};
  const auto neighbours_in_one_message = [](const Request& request) {
    Plan plan{.collective = Collective::all_gather, .world = request.world, .rank = request.rank};
    plan.lanes = {{.channel = 0, .loops = {{.iterations = 1, .steps = {}}}}};
    plan.lanes[0].loops[0].steps.push_back(
        {.op = Op::send, .to = fixed(next(request.rank, request.world)), .source = window(Buffer::output, fixed(0), 2)});
    return plan;
  };
  const Request request{.collective = Collective::all_gather, .world = {3}, .rank = {0}};
  CHECK(build_placed(neighbours_in_one_message, request, order).lanes[0].loops[0].steps[0].to == fixed(1));
  for (const char* name : {"bruck", "recursive_doubling"}) {
    const algorithms::Algorithm& algorithm = *algorithms::find(Collective::all_gather, name);
    const Request of_four{.collective = Collective::all_gather, .world = {4}, .rank = {1}};
    const Plan plain = algorithm.build(of_four);
    if (!plain.refusal.empty()) continue;
    const std::vector<Rank> turned = {{0}, {2}, {1}, {3}};
    const Plan placed = build_placed([&](const Request& each) { return algorithm.build(each); }, of_four, turned);
    REQUIRE(placed.lanes.size() == plain.lanes.size());
    REQUIRE(placed.lanes[0].loops.size() == plain.lanes[0].loops.size());
    for (std::size_t l = 0; l < plain.lanes[0].loops.size(); ++l)
      for (std::size_t s = 0; s < plain.lanes[0].loops[l].steps.size(); ++s)
        CHECK(describe(placed.lanes[0].loops[l].steps[s], 0) == describe(plain.lanes[0].loops[l].steps[s], 0));
  }
}
