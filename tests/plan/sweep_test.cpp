// SPDX-License-Identifier: Apache-2.0
#include "plan/sweep.h"

#include <catch2/catch.hpp>

#include "plan/all_plans.h"

using namespace shoal;
using namespace shoal::plan;

namespace {

std::string lines(const std::vector<std::string>& list) {
  std::string text;
  for (const std::string& line : list) text += line + "\n";
  return text;
}

}  // namespace

TEST_CASE("sweep: every algorithm is proven for worlds 1 to 33 and some large ones, for every root, in every mode it declares") {
  const SweepResult result = sweep(subjects(), {.dense = 33, .sampled = {63, 64, 65, 127, 128, 512, 513}});
  INFO(lines(result.failures));
  CHECK(result.wrong == 0);
  CHECK(result.sets > 0);
  INFO(lines(result.left_out));
  CHECK(result.left_out.empty());
}

// Hidden: minutes. `plan_test "[sweep]"`, as CI runs it.
TEST_CASE("sweep: every algorithm is proven for worlds 1 to 64, and for sampled ones up to 4096", "[.sweep]") {
  const SweepResult result = sweep(subjects());
  WARN(result.sets << " plan sets, " << result.refused << " refused; left out:\n" << lines(result.left_out));
  INFO(lines(result.failures));
  CHECK(result.wrong == 0);
}

TEST_CASE("sweep: a plan that is wrong for one root of one world is found, and what is too large is named") {
  const auto build = [](const Request& request) {
    Plan plan = algorithms::find(Collective::broadcast, "linear")->build(request);
    if (request.world.value == 5 && request.root.value == 3 && request.rank.value == 0) plan.lanes[0].loops.clear();
    return plan;
  };
  const std::vector<Subject> subject{{"linear", Collective::broadcast, build}};
  const SweepResult result = sweep(subject, {.dense = 6, .sampled = {8, 9, 10}, .budget = 8, .largest_budget = 10, .threads = 2});
  CHECK(result.sets == 1 + 2 + 3 + 4 + 5 + 6 + 3 + 3);  // one a root; of the sampled worlds roots 0, 1 and the last
  CHECK(result.wrong == 1);
  REQUIRE(result.failures.size() == 1);
  CHECK_THAT(result.failures[0], Catch::Matchers::StartsWith("broadcast linear, world 5, root 3: "));
  CHECK(result.left_out == std::vector<std::string>{"broadcast linear, world 9: more than 8 chunks"});
}

TEST_CASE("sweep: groupings of the ranks are swept where they change the plan") {
  const auto sets = [](std::string_view name) {
    const algorithms::Algorithm* algorithm = algorithms::find(Collective::all_reduce, name);
    const std::vector<Subject> subject{
        {name, Collective::all_reduce, [=](const Request& request) { return algorithm->build(request); }}};
    const SweepResult result = sweep(subject, {.dense = 12, .sampled = {}});
    CHECK(result.wrong == 0);
    return result.sets;
  };
  CHECK(sets("ring") == 12);
  CHECK(sets("hierarchical") > 12);
}
