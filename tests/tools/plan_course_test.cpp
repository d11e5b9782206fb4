// SPDX-License-Identifier: Apache-2.0
// The course's table of all-reduces: what plans cost, counted, against its formulas, as integers.
#include <catch2/catch.hpp>
#include <map>

#include "tools/plan/course.h"

using namespace shoal;
using namespace shoal::plan_tool;

TEST_CASE("course: what is counted equals the formulas, for worlds 4, 8, 64 and 1024") {
  for (const std::int32_t world : {4, 8, 64, 1024}) {
    const auto rows = course_table({world});
    REQUIRE(rows.is_ok());
    CHECK(rows->size() == 7);
    for (const CourseRow& row : *rows) {
      INFO(row.algorithm << " in a world of " << world);
      CHECK(row.counted.steps == row.expected.steps);
      CHECK(row.counted.peak.value * row.expected.peak.of == row.expected.peak.value * row.counted.peak.of);
      CHECK(row.counted.total.value * row.expected.total.of == row.expected.total.value * row.counted.total.of);
      CHECK(row.counted == row.expected);
    }
  }
}

TEST_CASE("course: the counts for eight ranks, written out") {
  const auto rows = course_table({8});
  REQUIRE(rows.is_ok());
  // Steps; bytes of the peak and of all, for a vector of 8 bytes.
  const std::map<std::string_view, std::array<std::uint64_t, 3>> expected = {
      {"parameter_server", {2, 56, 56}},  {"sequential", {8, 56, 56}},
      {"whole_ring", {7, 8, 64}},         {"ring", {14, 14, 112}},
      {"all_pairs", {1, 56, 448}},        {"recursive_doubling", {3, 8, 64}},
      {"halving_doubling", {6, 14, 112}},
  };
  for (const CourseRow& row : *rows) {
    INFO(row.algorithm);
    const auto& [steps, peak, total] = expected.at(row.algorithm);
    CHECK(row.counted.steps == steps);
    CHECK(row.counted.peak == Vectors{peak, 8});
    CHECK(row.counted.total == Vectors{total, 8});
    CHECK((row.reading == Reading::whole) == (row.algorithm == "ring" || row.algorithm == "halving_doubling"));
  }
}

TEST_CASE("course: only powers of two have the table") {
  for (const std::int32_t world : {1, 3, 6, 1023, 2048}) CHECK(!course_table({world}).is_ok());
}

TEST_CASE("course: numbers of vectors are exact") {
  CHECK(text_of(Vectors{14, 8}) == "1.75");
  CHECK(text_of(Vectors{56, 8}) == "7");
  CHECK(text_of(Vectors{2046, 1024}) == "1.998047");
  CHECK(Vectors{6, 4} == Vectors{3, 2});
  CHECK_FALSE(Vectors{6, 4} == Vectors{7, 4});
}
