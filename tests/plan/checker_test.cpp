// SPDX-License-Identifier: Apache-2.0
#include "plan/checker.h"

#include <catch2/catch.hpp>

#include "plan/all_plans.h"
#include "plan/builder.h"

using namespace shoal;
using namespace shoal::plan;

TEST_CASE("checker: every algorithm is proven for every world from 1 to 33, in every mode it declares") {
  for (const algorithms::Algorithm& algorithm : algorithms::all())
    for (std::int32_t world = 1; world <= 33; ++world) {
      const auto plans = plans_of(algorithm, world);
      const Status status = check_all_modes(plans);
      INFO(algorithm.name << " world " << world << ": " << status.text());
      CHECK(status.is_ok());
    }
}

TEST_CASE("checker: plans are proven for some large worlds") {
  for (const algorithms::Algorithm& algorithm : algorithms::all())
    for (std::int32_t world : {63, 64, 65, 128}) {
      const Status status = check(plans_of(algorithm, world), {.slices = 1});
      INFO(algorithm.name << " world " << world << ": " << status.text());
      CHECK(status.is_ok());
    }
}

TEST_CASE("checker: a plan that is not declared safe by reference is not") {
  for (const algorithms::Algorithm& algorithm : algorithms::all())
    for (std::int32_t world : {2, 4, 8}) {
      const auto plans = plans_of(algorithm, world);
      if (plans[0].by_reference) continue;
      CHECK_FALSE(check(plans, {LinkMode::by_reference, true}).is_ok());
    }
}

TEST_CASE("checker: a plan's size does not grow with the world where its pattern is a loop") {
  const auto steps = [](std::int32_t world) {
    const Plan plan = algorithms::find(Collective::all_reduce, "ring")->build({world}, {1});
    std::size_t n = 0;
    for (const Loop& loop : plan.lanes[0].loops) n += loop.steps.size();
    return n;
  };
  CHECK(steps(3) == steps(16384));
}

TEST_CASE("checker: the error names rank, step and chunk") {
  auto plans = plans_of(*algorithms::find(Collective::all_reduce, "ring"), 4);
  plans[2].lanes[0].loops[0].steps[0].source = input(rotating(3, 0, 4));  // it should send chunk 1
  const Status status = check(plans);
  REQUIRE_FALSE(status.is_ok());
  CHECK(status.text() == "ring of 4 ranks: rank 3, step 1 (recv_reduce_send from 2 to 0: input[1]): adds chunk 3 to chunk 1");
}

TEST_CASE("checker: a deadlock names who waits for what") {
  auto plans = plans_of(*algorithms::find(Collective::all_reduce, "ring"), 2);
  for (Plan& plan : plans) plan.credits = 0;
  const Status status = check(plans);
  REQUIRE_FALSE(status.is_ok());
  CHECK(
      status.text() ==
      "ring of 2 ranks: deadlock with 0 credits; rank 0 at step 0 (send to 1: input[1]); rank 1 at step 0 (send to 0: input[0])");
}

TEST_CASE("checker: two lanes that write the same chunk are refused") {
  LaneBuilder one, two;
  one.copy(input(fixed(Rank{0})), output(fixed(Rank{0})), true);
  two.copy(input(fixed(Rank{0})), output(fixed(Rank{0})), true);
  const std::vector<Plan> plans{{.algorithm = "twice", .world = {1}, .rank = {0}, .lanes = {one.take(), two.take()}}};
  CHECK_FALSE(check(plans).is_ok());
}
