// SPDX-License-Identifier: Apache-2.0
// Results that come back: from our own JSON, from nccl-tests', and what is no such file.
#include "perf/earlier_run.h"

#include <catch2/catch.hpp>

#include "perf/baseline.h"
#include "perf/json_report.h"
#include "perf/plot.h"
#include "tools/well_formed.h"

using namespace shoal::perf;
using shoal::testing::fault_in;

namespace {

Row row_of(std::uint64_t size, double out_us, double in_us, int root = -1) {
  Row row = {.size = size, .count = size / 4, .type = "float", .reduction = "sum", .root = root, .timestamp = ""};
  row.out_of_place = make_measurement(size, out_us, 1.5);
  if (in_us > 0) row.in_place = make_measurement(size, in_us, 1.5);
  return row;
}

Results results_of(std::vector<Row> rows, std::string name = "run") {
  return {.name = std::move(name), .collective = "all_reduce", .world = 4, .rows = std::move(rows)};
}

Results good(std::string_view text) {
  auto parsed = parse_results(text);
  const std::string* why = std::get_if<std::string>(&parsed);
  INFO((why != nullptr ? *why : ""));
  REQUIRE(why == nullptr);
  return std::get<Results>(std::move(parsed));
}

std::string bad(std::string_view text) {
  auto parsed = parse_results(text);
  const std::string* why = std::get_if<std::string>(&parsed);
  return why != nullptr ? *why : "it was taken";
}

std::size_t times(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("the JSON of a run is read back as it was") {
  Options options;
  REQUIRE(parse_options("reduce_perf", {"-r", "2"}, options).proceed);
  JsonRun run;
  run.arguments = {"reduce_perf", "-r", "2"};
  run.ranks = {{0, 1, "a", 0}, {1, 2, "a", 0}, {2, 3, "b", 0}};
  run.rows = {row_of(1024, 2.5, 4.25, 2), row_of(std::uint64_t{5} << 30, 1e6, 2e6, 2)};
  run.rows[1].in_place.reset();
  const Results back = good(json_text(options, run));
  CHECK(back.collective == "reduce");
  CHECK(back.world == 3);
  REQUIRE(back.rows.size() == 2);
  CHECK(back.key(back.rows[0]) == RowKey{"reduce", 1024, "float", "sum", 2});
  CHECK(back.rows[0].count == 256);
  CHECK(back.rows[0].out_of_place->time_us == 2.5);
  CHECK(back.rows[0].in_place->time_us == 4.25);
  CHECK(back.rows[0].in_place->bus_gbs == run.rows[0].in_place->bus_gbs);
  CHECK(back.rows[1].size == std::uint64_t{5} << 30);
  CHECK_FALSE(back.rows[1].in_place);
}

TEST_CASE("nccl-tests' files are read: the program's name says which collective it is") {
  const Results read = good(R"({"version": 3, "args": ["./build/all_gather_perf", "-b", "8"],
    "config": {"nthreads": 1, "devices": [{"rank": 0}, {"rank": 1}]},
    "results": [{"size": 4096, "count": 512, "type": "float", "redop": "none", "root": "    -1",
                 "out_of_place": {"time": 11.5, "alg_bw": 0.36, "bus_bw": 0.18, "nwrong": "0"},
                 "in_place": {"time": 11.0, "alg_bw": 0.37, "bus_bw": 0.19, "nwrong": "N/A"}}]})");
  CHECK(read.collective == "all_gather");
  CHECK(read.world == 2);
  CHECK(read.rows[0].root == -1);
  CHECK(read.rows[0].out_of_place->time_us == 11.5);
}

TEST_CASE("what is no such file is refused with the place") {
  CHECK(bad("") == "is no JSON");
  CHECK(bad("{\"results\": [") == "is no JSON");
  CHECK(bad("[]") == "has no list \"results\": is no file of -J");
  CHECK(bad("{\"results\": {}}") == "has no list \"results\": is no file of -J");
  CHECK(bad("{\"results\": [7]}") == "result 0 is no object");
  CHECK(bad("{\"results\": [{}]}") == "result 0: \"size\" is no number of at least 0");
  const std::string start = R"({"results": [{"size": 8, "count": 2, "type": "float", "redop": "sum", "root": -1)";
  CHECK(bad(start + "}]}") == "result 0: \"out_of_place\" is missing, and \"in_place\" too");
  CHECK(bad(start + R"(, "out_of_place": {"time": "fast"}}]})") == "result 0: \"time\" is no number of at least 0");
  CHECK(bad(start + R"(, "out_of_place": {"time": -1}}]})") == "result 0: \"time\" is no number of at least 0");
  CHECK(bad("\xff\xfe{}") == "is no JSON");
  CHECK(std::get<std::string>(read_results("/nosuch/run.json")) == "No such file or directory");
}

TEST_CASE("baseline: ratios of the same calls, the shortest of several cycles; a half above the tolerance is worse") {
  const Results then = results_of({row_of(64, 10, 20), row_of(128, 10, 10), row_of(64, 8, 30), row_of(512, 1, 1)});
  const Results now = results_of({row_of(64, 12, 20), row_of(128, 14, 10), row_of(256, 1, 1), row_of(64, 10, 22)});
  const std::vector<Compared> compared = compare(then, now);
  REQUIRE(compared.size() == 2);
  CHECK(compared[0].key.size == 64);
  CHECK(compared[0].out_of_place->ratio() == 1.25);  // 10 / 8
  CHECK(compared[0].in_place->ratio() == 1);
  CHECK(compared[1].out_of_place->ratio() == 1.4);
  CHECK_FALSE(compared[0].is_worse(1.25));
  CHECK(compared[1].is_worse(1.25));
  CHECK_FALSE(is_good(compared, 1.25));
  CHECK(is_good(compared, 1.5));
  const std::string text = comparison_text(compared, "old.json", 1.25);
  CHECK(text.find("# Baseline: old.json; more than 1.25 times its time is worse\n") != std::string::npos);
  CHECK(text.find("# Baseline: 2 calls compared, 1 worse: FAILED\n") != std::string::npos);
  CHECK(times(text, "WORSE") == 1);
  CHECK(comparison_text(compared, "old.json", 2).find("0 worse: OK\n") != std::string::npos);
}

TEST_CASE("baseline: another collective or world is refused, and nothing in common is no success") {
  const Results now = results_of({row_of(64, 10, 10)});
  Results other = now;
  CHECK(check_comparable(other, now).empty());
  other.collective = "broadcast";
  CHECK(check_comparable(other, now) == "is of broadcast, this run is of all_reduce");
  other = now;
  other.world = 2;
  CHECK(check_comparable(other, now) == "is of 2 ranks, this run has 4");
  const std::vector<Compared> nothing = compare(results_of({row_of(128, 10, 10)}), now);
  CHECK(nothing.empty());
  CHECK_FALSE(is_good(nothing, 100));
  CHECK(comparison_text(nothing, "old.json", 2).find("FAILED") != std::string::npos);
  other = now;
  other.rows[0].out_of_place->cpu_us = 3;  // a processor's time is no elapsed time
  CHECK(compare(other, now).empty());
  other = now;
  other.collective = "";  // a file that does not say
  CHECK(compare(other, now).size() == 1);
}

TEST_CASE("plot: well-formed, a line each, named by what tells them apart; nothing to draw is a picture too") {
  const Results one = results_of({row_of(64, 10, 20), row_of(1024, 12, 22)}, "here");
  const std::string alone = plot(std::vector<Results>{one});
  CHECK(fault_in(alone) == "");
  CHECK(times(alone, ">out of place<") == 2);  // one a chart
  CHECK(times(alone, ">in place<") == 2);
  CHECK(alone.find(">all_reduce, 4 ranks<") != std::string::npos);
  const std::string both = plot(std::vector<Results>{one, results_of({row_of(64, 5, 5), row_of(1024, 6, 0)}, "a <b> & c")});
  CHECK(fault_in(both) == "");
  CHECK(times(both, ">here<") == 2);
  CHECK(times(both, "a &lt;b&gt; &amp; c") == 2);
  CHECK(times(both, "in place") == 0);
  for (const Results& empty : {results_of({}), results_of({row_of(0, 1, 1)}), results_of({row_of(8, 0, 0)})}) {
    CHECK(fault_in(plot(std::vector<Results>{empty})) == "");
  }
  CHECK(fault_in(plot({})) == "");
  Results several = one;
  several.rows[1].type = "half";
  const std::string types = plot(std::vector<Results>{several});
  CHECK(times(types, ">float<") == 2);
  CHECK(times(types, ">half<") == 2);
  for (const std::string& svg : {alone, both, types}) {
    CHECK(svg.find("nan") == std::string::npos);
    CHECK(svg.find("inf") == std::string::npos);
  }
}
