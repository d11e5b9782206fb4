// SPDX-License-Identifier: Apache-2.0
#include "perf/report.h"

#include <catch2/catch.hpp>
#include <sstream>

using namespace shoal::perf;

namespace {

std::vector<std::string> fields(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> result;
  for (std::string field; stream >> field;) result.push_back(field);
  return result;
}

Options standard() {
  Options options;
  REQUIRE(parse_options("all_reduce_perf", {}, options).proceed);
  return options;
}

Row sample_row() {
  Row row;
  row.size = 1 << 20;
  row.count = 262144;
  row.type = "float";
  row.reduction = "sum";
  row.out_of_place = make_measurement(row.size, 100.0, find_collective("all_reduce")->bus_factor(4));
  row.out_of_place->wrong = 0;
  row.in_place = row.out_of_place;
  row.in_place->wrong = 3;
  return row;
}

}  // namespace

TEST_CASE("numbers keep two decimals, then one, then none, then take an exponent, within their width") {
  CHECK(number_text(0, 7) == "0.00");
  CHECK(number_text(1.005, 7) == "1.00");
  CHECK(number_text(9999.99, 7) == "9999.99");
  CHECK(number_text(9999.999, 7) == "10000.0");
  CHECK(number_text(12345.678, 7) == "12345.7");
  CHECK(number_text(1234567.4, 7) == "1234567");
  CHECK(number_text(12345678.0, 7) == "1.2e+07");
  CHECK(number_text(123.456, 6) == "123.46");
  CHECK(number_text(1234.56, 6) == "1234.6");
  CHECK(number_text(99999.96, 6) == "100000");
  CHECK(number_text(1e12, 6) == "1e+12");
  CHECK(number_text(1e300, 7) == "1e+300");
}

TEST_CASE("bandwidth columns: 4 ranks, 1 MiB, 100 us") {
  const Measurement half = make_measurement(1 << 20, 100.0, find_collective("all_reduce")->bus_factor(4));
  CHECK(number_text(half.algorithm_gbs, 6) == "10.49");
  CHECK(number_text(half.bus_gbs, 6) == "15.73");
  CHECK(make_measurement(8, 0.0, 1.0).algorithm_gbs == 0);  // a clock too coarse is not infinite bandwidth
}

TEST_CASE("a row has nccl-tests' thirteen fields at its places") {
  const std::string text = row_text(sample_row(), standard());
  CHECK(
      text ==
      "     1048576        262144     float     sum      -1   100.00   10.49   15.73       0   100.00   10.49   15.73       3\n");
  const auto row = fields(text);
  REQUIRE(row.size() == 13);
  CHECK(row[0] == "1048576");
  CHECK(row[5] == "100.00");
  CHECK(row[6] == "10.49");
  CHECK(row[7] == "15.73");
  CHECK(row[9] == "100.00");
  CHECK(row[12] == "3");
}

TEST_CASE("what was not checked or does not exist reads N/A") {
  Row row = sample_row();
  row.out_of_place->wrong.reset();
  row.in_place.reset();
  const auto got = fields(row_text(row, standard()));
  REQUIRE(got.size() == 13);
  CHECK(got[8] == "N/A");
  for (std::size_t i = 9; i < 13; ++i) CHECK(got[i] == "N/A");
}

TEST_CASE("CPU time takes the time column, bandwidth stays that of elapsed time") {
  Row row = sample_row();
  row.out_of_place->cpu_us = 7.0;
  const auto got = fields(row_text(row, standard()));
  CHECK(got[5] == "7.00");
  CHECK(got[6] == "10.49");
}

TEST_CASE("timestamps and statistics come after the thirteen fields") {
  Options options = standard();
  options.timestamps = true;
  options.per_iteration = true;
  Row row = sample_row();
  row.timestamp = "2026-02-28 13:00:01";
  row.out_of_place->iterations = iteration_statistics({1, 2, 3, 4});
  const auto got = fields(row_text(row, options));
  REQUIRE(got.size() == 13 + 2 + 8);
  CHECK(got[13] == "2026-02-28");
  CHECK(got[15] == "1.00");
  CHECK(got[16] == "4.00");
  CHECK(got[17] == "4.00");
  CHECK(got[18] == "0.45");
  CHECK(got[19] == "N/A");
}

TEST_CASE("statistics of iterations: nearest ranks, and one value is all of them") {
  std::vector<double> hundred;
  for (int i = 100; i >= 1; --i) hundred.push_back(i);
  const auto s = iteration_statistics(hundred);
  CHECK((s.min == 1 && s.max == 100 && s.average == 50.5 && s.p50 == 50 && s.p95 == 95 && s.p99 == 99));
  CHECK(s.deviation == Approx(28.866070));
  CHECK(s.variation == Approx(28.866070 / 50.5));
  CHECK(s.times == hundred);
  const auto one = iteration_statistics({5});
  CHECK((one.min == 5 && one.max == 5 && one.p50 == 5 && one.p99 == 5 && one.deviation == 0 && one.variation == 0));
}

TEST_CASE("every line of heading and footer is a comment") {
  Options options = standard();
  options.step_factor = 2;
  Verdict verdict;
  verdict.average_bus_gbs = 12.5;
  verdict.errors = {"it broke"};
  const std::string all =
      heading(options, 22809, {{0, 12, "node", 0}, {1, 13, "node", 0}}) + column_heading(options) + footer(options, verdict);
  std::istringstream stream(all);
  for (std::string line; std::getline(stream, line);) CHECK(line.substr(0, 1) == "#");
  for (const char* part :
       {"nccl-headers=22809 nccl-library=22809", "# Collective test starting: all_reduce_perf\n",
        "# nThread 1 nGpus 1 minBytes 33554432 maxBytes 33554432 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1 "
        "validation: 1 graph: 0\n",
        "#  Rank  1 Group  0 Pid     13 on       node device  0", "# Out of bounds values : 0 OK\n",
        "# Avg bus bandwidth    : 12.5\n", "# Collective test concluded: all_reduce_perf\n", "# error: it broke\n"}) {
    CAPTURE(part, all);
    CHECK(all.find(part) != std::string::npos);
  }
}

TEST_CASE("the verdict: wrong values, too little bandwidth, and 90 % of what is asked is enough") {
  const Options options = standard();
  Verdict verdict;
  verdict.average_bus_gbs = 9.0;
  verdict.required_gbs = 10.0;
  CHECK(verdict.good());
  CHECK(footer(options, verdict).find("# Avg bus bandwidth    : 9 OK\n") != std::string::npos);
  verdict.average_bus_gbs = 8.9;
  CHECK_FALSE(verdict.good());
  CHECK(footer(options, verdict).find(" : 8.9 FAILED\n") != std::string::npos);
  verdict = {};
  verdict.wrong = 2;
  CHECK_FALSE(verdict.good());
  CHECK(footer(options, verdict).find("# Out of bounds values : 2 FAILED\n") != std::string::npos);
}
