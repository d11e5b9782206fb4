// SPDX-License-Identifier: Apache-2.0
// The checker must catch every way in which a plan can be wrong: each step of each rank's plan is spoilt in turn.
#include "plan/mutations.h"

#include <catch2/catch.hpp>

#include "plan/all_plans.h"

using namespace shoal;
using namespace shoal::plan;

TEST_CASE("checker: every mutation of every step of every algorithm is caught") {
  const std::vector<MutationRow> rows = mutate(subjects());
  REQUIRE(rows.size() == subjects().size());
  std::array<std::int64_t, kMutations> applied{};
  for (const MutationRow& row : rows) {
    std::string survivors;
    for (const std::string& survivor : row.survivors) survivors += survivor + "\n";
    INFO(row.subject << "\n" << survivors);
    CHECK(row.survivors.empty());
    for (std::size_t m = 0; m < kMutations; ++m) {
      CHECK(row.counts[m].applied == row.counts[m].caught);
      applied[m] += row.counts[m].applied;
    }
  }
  for (std::size_t m = 0; m < kMutations; ++m) {
    INFO(mutation_names()[m]);
    CHECK(applied[m] > 0);
  }
}

TEST_CASE("mutations: the table shows the whole list") {
  const std::vector<Subject> all = subjects();
  const std::string table = mutation_table(mutate(std::span(all).first(1), {.worlds = {3}, .threads = 1}));
  CHECK(table.find("all_reduce ring") != std::string::npos);
  for (const std::string_view name : mutation_names()) CHECK(table.find(name) != std::string::npos);
}

TEST_CASE("mutations: a step that a plan does not need is reported") {
  const auto build = [](const Request& request) {
    Plan plan = algorithms::find(Collective::all_gather, "ring")->build(request);
    if (request.rank.value == 0) {
      Loop& first = plan.lanes[0].loops[0];
      first.steps.insert(first.steps.begin(), {.op = Op::copy, .source = input(fixed(0)), .target = output(fixed(0))});
    }
    return plan;
  };
  const std::vector<MutationRow> rows =
      mutate(std::vector<Subject>{{"copies twice", Collective::all_gather, build}}, {.worlds = {3}});
  REQUIRE(rows.size() == 1);
  REQUIRE_FALSE(rows[0].survivors.empty());
  CHECK(rows[0].survivors[0] ==
        "all_gather copies twice, world 3: drop a step: rank 0, lane 0, loop 0, step 0 (copy: input[0] -> output[0])");
}
