// SPDX-License-Identifier: Apache-2.0
#include "perf/json_report.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "perf/output_file.h"

using namespace shoal::perf;

TEST_CASE("the JSON has version 3's members, its booleans are words and its root is padded text") {
  Options options;
  REQUIRE(parse_options("all_reduce_perf", {"-f", "2"}, options).proceed);
  JsonRun run;
  run.arguments = {"all_reduce_perf", "-f", "2", "\xff"};  // not UTF-8
  run.environment = {"NCCL_DEBUG=WARN"};
  run.start_time = "2026-02-28 13:00:01";
  run.end_time = "2026-02-28 13:00:02";
  run.library_version = 22809;
  run.ranks = {{0, 11, "node", 0}, {1, 11, "node", 1}};
  Row row;
  row.size = 1024;
  row.count = 256;
  row.type = "float";
  row.reduction = "sum";
  row.out_of_place = make_measurement(1024, 2.0, 1.0);
  row.out_of_place->wrong = 0;
  row.in_place = make_measurement(1024, 4.0, 1.0);
  row.in_place->iterations = iteration_statistics({3, 5});
  run.rows = {row};
  run.verdict.average_bus_gbs = 0.384;
  run.verdict.required_gbs = 10;

  const auto json = nlohmann::json::parse(json_text(options, run));
  CHECK(json["version"] == 3);
  CHECK(json["nccl_version"] == 22809);
  CHECK(json["args"].size() == 4);
  CHECK(json["env"][0] == "NCCL_DEBUG=WARN");
  CHECK(json["config"]["step_factor"] == 2);
  CHECK_FALSE(json["config"].contains("step_bytes"));
  CHECK(json["config"]["minimum_bytes"] == 33554432);
  CHECK(json["config"]["parallel_init"] == "false");
  CHECK(json["config"]["devices"][1]["hostname"] == "node");
  CHECK(json["config"]["devices"][1]["device_hex"] == "0x01");
  REQUIRE(json["results"].size() == 1);
  const auto& result = json["results"][0];
  CHECK(result["size"] == 1024);
  CHECK(result["root"] == "    -1");
  CHECK(result["out_of_place"]["time"] == 2.0);
  CHECK(result["out_of_place"]["alg_bw"] == 0.512);
  CHECK(result["out_of_place"]["nwrong"] == 0);
  CHECK(result["in_place"]["nwrong"] == "N/A");
  CHECK(result["in_place"]["per_iteration"]["times"].size() == 2);
  CHECK(result["experiment_name"] == "all_reduce_perf");
  CHECK(json["out_of_bounds"]["okay"] == "true");
  CHECK(json["average_bus_bandwidth"]["okay"] == "false");
  CHECK(json["errors"].empty());
  CHECK(json["end_time"] == "2026-02-28 13:00:02");
}

TEST_CASE("the secret of a job never reaches a report") {
  ::setenv("SHOAL_SECRET", "hush", 1);
  ::setenv("NCCL_TESTS_SOMETHING", "1", 1);
  const auto shown = reportable_environment();
  CHECK(
      std::none_of(shown.begin(), shown.end(), [](const std::string& entry) { return entry.find("hush") != std::string::npos; }));
  CHECK(std::count(shown.begin(), shown.end(), "NCCL_TESTS_SOMETHING=1") == 1);
}

TEST_CASE("a report never overwrites: the name gets .0, .1 and so on") {
  std::string pattern = (std::filesystem::temp_directory_path() / "shoal-json-XXXXXX").string();
  const std::filesystem::path directory = ::mkdtemp(pattern.data());
  const std::string path = (directory / "r.json").string();
  for (const std::string& expected : {path, path + ".0", path + ".1"}) {
    NewFile file(path);
    CHECK(file.error().empty());
    CHECK(file.path() == expected);
    CHECK(file.write("{}"));
    std::ifstream written(expected);
    std::string text;
    CHECK(std::getline(written, text));
    CHECK(text == "{}");
  }
  std::filesystem::remove_all(directory);
  CHECK(NewFile((directory / "gone.json").string()).error() == "No such file or directory");
}
