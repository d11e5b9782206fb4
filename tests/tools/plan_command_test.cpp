// SPDX-License-Identifier: Apache-2.0
// shoal-plan as its users meet it: the built program, its lines and its exit codes.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "algorithms/algorithms.h"
#include "tools/spawn.h"

using namespace shoal::testing;
using nlohmann::json;
using Words = std::vector<std::string>;

namespace {

Finished run(const std::string& arguments) {
  Words words = {SHOAL_PLAN};
  std::istringstream text(arguments);
  for (std::string word; text >> word;) words.push_back(word);
  return spawn(words, {.deadline = std::chrono::seconds(100)});
}

json run_json(const std::string& arguments) {
  const Finished done = run(arguments + " --json");
  INFO(arguments << ": " << done.err);
  REQUIRE(done.code == 0);
  const json parsed = json::parse(done.out, nullptr, /*allow_exceptions=*/false);
  REQUIRE_FALSE(parsed.is_discarded());
  return parsed;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string line_with(const std::string& text, const std::string& part) {
  for (const std::string& line : lines_of(text))
    if (has(line, part)) return line;
  return "no line with " + part;
}

// A file's name that goes with the test.
struct TemporaryFile {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("shoal-plan-" + std::to_string(::getpid()) + "-" + std::to_string(++made));
  ~TemporaryFile() { std::filesystem::remove(path); }
  std::string text() const {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static inline int made = 0;
};

}  // namespace

TEST_CASE("help goes to standard output with exit code 0") {
  for (const char* arguments :
       {"--help", "list --help", "show -h", "check --help", "simulate --help", "compare --help", "explain --help"}) {
    INFO(arguments);
    const Finished done = run(arguments);
    CHECK(done.code == 0);
    CHECK(done.err.empty());
    CHECK(has(done.out, "Usage: shoal-plan"));
  }
}

TEST_CASE("a bad argument is one line that names it, with exit code 2") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "no command: list, show, check, simulate, compare, explain or desync"},
      {"draw", "draw: is no command: list, show, check, simulate, compare, explain or desync"},
      {"show", "COLLECTIVE is missing: one of all_reduce"},
      {"show nosuch", "COLLECTIVE nosuch: is no collective: all_reduce, reduce"},
      {"show all_reduce", "--algorithm is missing: all_reduce has ring, recursive_doubling"},
      {"show barrier -a ring", "--algorithm ring: barrier has dissemination, tree"},
      {"show all_reduce -a ring -n 0", "-n/--world 0: must be at least 1"},
      {"show all_reduce -a ring -n x", "-n/--world x: "},
      {"show all_reduce -a ring --root 1", "--root 1: all_reduce has no root"},
      {"show broadcast -a chain -n 4 --root 4", "--root 4: a world of 4 has ranks 0 to 3"},
      {"show all_reduce -a ring -n 4 --rank 4", "--rank 4: a world of 4 has ranks 0 to 3"},
      {"show all_reduce -a hierarchical -n 4 --group 3", "--group 3: does not divide the world of 4"},
      {"show all_reduce -a all_pairs -n 64 --svg /dev/null", "too many to draw"},
      {"show all_reduce -a ring --nosuch", "--nosuch: is no option of this program"},
      {"simulate all_reduce -a ring -b 7", "--bytes 7: not whole elements of 4 bytes"},
      {"simulate all_gather -a ring -n 8 -b 8", "--bytes 8: less than an element for each of 8 blocks; 32 is the least"},
      {"simulate all_reduce -a ring --cluster nosuch", "--cluster nosuch: no cluster is named"},
      {"simulate all_reduce -a ring --cluster /nosuch.json", "--cluster /nosuch.json: "},
      {"simulate all_reduce -a ring --slice 0", "--slice 0: must be at least 1, or whole"},
      {"simulate all_reduce -a ring --slice some", "--slice some: is not a size"},
      {"simulate all_reduce -a ring -n 64 -b 1M --slice 4 --max-events 1000", "above the budget of 1000 (--max-events)"},
      {"compare --sizes 1K:1G", "--sizes 1K:1G: is no MIN:MAX:FACTOR"},
      {"compare --sizes 4:1:2", "--sizes 4:1:2: must be 1 <= MIN <= MAX"},
      {"compare --sizes 1:4:1", "--sizes 1:4:1: must have a FACTOR of at least 2"},
      {"compare --sizes 4:8:2 --worlds 2:4:2", "--worlds: not together with --sizes"},
      {"compare --algorithms ring,nosuch", "--algorithm nosuch: all_reduce has ring"},
      {"compare --course --world 6", "--world 6: the table is for powers of two from 2 to 1024"},
      {"check --all --mutations", "--mutations: not together with --all"},
      {"check -a ring", "--algorithm ring: of which COLLECTIVE?"},
      {"explain all_reduce --numerics exact", "--numerics exact: is neither fast nor ordered"},
      {"list --collective nosuch", "--collective nosuch: is no collective"},
  };
  for (const auto& [arguments, part] : cases) {
    INFO(arguments);
    const Finished done = run(arguments);
    CHECK(done.code == 2);
    CHECK(done.out.empty());
    CHECK(lines_of(done.err).size() == 1);
    CHECK(has(done.err, "shoal-plan: "));
    INFO(done.err);
    CHECK(has(done.err, part));
  }
}

TEST_CASE("list: every algorithm of the table, as text and as JSON") {
  const json all = run_json("list");
  REQUIRE(all.size() == shoal::algorithms::all().size());
  for (std::size_t a = 0; a < all.size(); ++a) {
    CHECK(all[a]["algorithm"] == shoal::algorithms::all()[a].name);
    CHECK(all[a]["summary"] == shoal::algorithms::all()[a].summary);
  }
  CHECK(all[0]["credits"] == 2);
  CHECK(all[0]["by_reference"] == true);
  CHECK(all[0]["order"] == "any");
  CHECK(all[1]["order"] == "doubling");
  const Finished barriers = run("list --collective barrier");
  CHECK(has(barriers.out, "3 algorithms"));
  CHECK(has(barriers.out, "dissemination"));
  CHECK_FALSE(has(barriers.out, "all_reduce"));
}

TEST_CASE("show: text, one rank, JSON, and a picture") {
  const Finished ring = run("show all_reduce --algorithm ring --world 4");
  CHECK(ring.code == 0);
  CHECK(has(ring.out, "all_reduce ring, 4 ranks: 4 chunks, 2 credits, by reference"));
  CHECK(has(ring.out, "6 rounds; a rank sends or receives at most 1.5 n, all ranks together send 6 n"));
  CHECK(has(ring.out, "rank 3\n"));
  const Finished one = run("show all_reduce --algorithm ring --world 4 --rank 1");
  CHECK(has(one.out, "rank 1\n"));
  CHECK_FALSE(has(one.out, "rank 0\n"));
  const json as_json = run_json("show all_reduce --algorithm ring --world 4");
  CHECK(as_json["ranks"].size() == 4);
  CHECK(as_json["ranks"][0]["lanes"][0]["loops"][1]["iterations"] == 2);

  const TemporaryFile file;
  const Finished drawn = run("show all_reduce --algorithm ring --world 4 --svg " + file.path.string());
  CHECK(drawn.code == 0);
  CHECK(has(file.text(), "<title>all_reduce ring, 4 ranks</title>"));
  CHECK(has(file.text(), "</svg>"));
  const Finished nowhere = run("show all_reduce --algorithm ring --svg /nosuch/ring.svg");
  CHECK(nowhere.code == 1);
  CHECK(has(nowhere.err, "--svg /nosuch/ring.svg: No such file or directory"));
}

TEST_CASE("check: a right set is 0, one with too few credits is 1 and names what waits") {
  const Finished right = run("check all_reduce --algorithm ring --world 5");
  CHECK(right.code == 0);
  CHECK(right.out == "all_reduce ring, world 5: right\n");
  const Finished stuck = run("check all_reduce --algorithm ring --world 4 --credits 1");
  CHECK(stuck.code == 1);
  CHECK(has(stuck.out, "wrong: ring of 4 ranks: deadlock with 1 credits"));
  CHECK(has(stuck.err, "1 of 1 plan sets are wrong"));
  const json all = run_json("check broadcast --world 7 --root 3");
  CHECK(all.size() == 6);
  for (const json& row : all) CHECK(row["result"] == "right");
}

TEST_CASE("check: the sweep and the mutations") {
  const Finished small = run("check --all --dense 5 --no-large");
  CHECK(small.code == 0);
  CHECK(has(small.out, "all_reduce ring "));
  CHECK(has(small.out, std::to_string(shoal::algorithms::all().size()) + " algorithms, "));
  CHECK(has(small.out, " 0 wrong, 0 left out"));
  const json swept = run_json("check --all barrier --dense 4 --no-large --jobs 1");
  CHECK(swept["algorithms"].size() == 3);
  CHECK(swept["wrong"] == 0);
  CHECK(swept["sets"] >= 8);
  const json spoiled = run_json("check --mutations all_gather --algorithm ring");
  CHECK(spoiled["algorithms"].size() == 1);
  CHECK(spoiled["applied"] > 100);
  CHECK(spoiled["applied"] == spoiled["caught"]);
}

TEST_CASE("simulate: a ring on a cluster of alpha and beta takes what the formula says") {
  const TemporaryFile file;
  {
    std::ofstream cluster(file.path.string() + ".json");
    cluster << R"({"name": "plain", "hosts": 4, "nics": {"latency_s": 1e-5, "bandwidth_Bps": 1e9}})";
  }
  const json ring = run_json("simulate all_reduce --algorithm ring --world 4 --bytes 4M --slice whole --cluster " +
                             file.path.string() + ".json");
  std::filesystem::remove(file.path.string() + ".json");
  const double bytes = 4 << 20;
  CHECK(ring["time_s"].get<double>() == Approx(6 * 1e-5 + 1.5 * bytes / 1e9).epsilon(1e-9));
  CHECK(ring["algbw_Bps"].get<double>() == Approx(bytes / ring["time_s"].get<double>()).epsilon(1e-12));
  CHECK(ring["busbw_Bps"].get<double>() == Approx(1.5 * ring["algbw_Bps"].get<double>()).epsilon(1e-12));
  CHECK(ring["total_bytes"] == 6 * (4 << 20));
  CHECK(ring["rounds"] == 6);
  CHECK(ring["period"] == 1);
  CHECK(ring["bytes_leaf"] == 6 * (4 << 20));
  CHECK(ring["ratio"].get<double>() >= 1);
}

TEST_CASE("simulate: text with the path, and slices that are chosen by the number of events") {
  const Finished small = run("simulate all_reduce --algorithm ring --world 8 --bytes 16M --path");
  CHECK(small.code == 0);
  CHECK(has(line_with(small.out, "slices"), "messages of at most 64 KiB"));
  CHECK(has(small.out, "critical path: the last 32 of "));
  CHECK(has(small.out, "1 of 8 ranks were run and stand for all"));
  const Finished large = run("simulate all_reduce --algorithm halving_doubling --world 1024 --bytes 1G");
  CHECK(large.code == 0);
  CHECK(has(line_with(large.out, "slices"), "whole: a message is as long as its chunks"));
  CHECK(has(line_with(large.out, "slices"), "the library's 64 KiB would take more than 20,000,000 events"));
}

TEST_CASE("simulate: 16,384 ranks") {
  const json ring = run_json("simulate all_reduce --algorithm ring --world 16384 --bytes 1G");
  CHECK(ring["period"] == 8);
  CHECK(ring["total_bytes"].get<double>() == 2.0 * 16383 * (1 << 30));
  CHECK(ring["time_s"].get<double>() >= ring["bound_s"].get<double>());
}

TEST_CASE("compare: the winner of each column is marked, and the chart is drawn") {
  const TemporaryFile file;
  const Finished done =
      run("compare all_reduce --world 8 --sizes 1K:1M:32 --algorithms ring,recursive_doubling --svg " + file.path.string());
  CHECK(done.code == 0);
  CHECK(has(line_with(done.out, "recursive_doubling"), "*"));
  CHECK(has(file.text(), ">recursive_doubling<"));
  CHECK(has(file.text(), "</svg>"));
  const json rows = run_json("compare all_reduce --world 8 --sizes 1K:1M:32 --algorithms ring,recursive_doubling")["rows"];
  REQUIRE(rows.size() == 3);
  CHECK(rows[0]["winner"] == "recursive_doubling");
  for (const json& row : rows) {
    const double ring = row["time_s"]["ring"], doubling = row["time_s"]["recursive_doubling"];
    CHECK(row["winner"] == (ring < doubling ? "ring" : "recursive_doubling"));
  }
  const json worlds = run_json("compare barrier --worlds 2:8:2")["rows"];
  CHECK(worlds.size() == 3);
  CHECK(worlds[2]["world"] == 8);
}

TEST_CASE("compare --course: every row equals its formula") {
  const json rows = run_json("compare --course");
  CHECK(rows.size() == 4 * 7);
  for (const json& row : rows) {
    INFO(row.dump());
    CHECK(row["equal"] == true);
  }
  const Finished eight = run("compare --course --world 8");
  CHECK(eight.code == 0);
  CHECK_FALSE(has(eight.out, "is not"));
  const std::string ring = line_with(eight.out, "all-reduce, ring  ");
  for (const char* part : {"14 = 2(N-1)", "1.75 = 2(N-1)/N"}) CHECK(has(ring, part));
}

TEST_CASE("explain: the winner first, the refused last, and ordered numerics leave only one order of addition") {
  const json fast = run_json("explain all_reduce --world 8 --bytes 1M");
  const json& candidates = fast["candidates"];
  CHECK(candidates.size() == 19);
  CHECK(has(candidates[0]["why"].get<std::string>(), "wins"));
  double before = 0;
  for (const json& c : candidates) {
    if (c.contains("refused")) continue;
    CHECK(c["time_s"].get<double>() >= before);
    before = c["time_s"];
  }
  const json ordered = run_json("explain all_reduce --world 8 --bytes 1M --numerics ordered");
  for (const json& c : ordered["candidates"]) {
    if (c["algorithm"] == "ring") CHECK(has(c["refused"].get<std::string>(), "ordered numerics"));
    if (c["algorithm"] == "recursive_doubling") CHECK_FALSE(c.contains("refused"));
  }
  const Finished text = run("explain all_reduce --world 16 --bytes 64K");
  CHECK(text.code == 0);
  CHECK(has(line_with(text.out, "one_shot"), "needs all ranks on one host"));
}

TEST_CASE("documentation: what the page of algorithms says of the table is true, and every picture that it shows exists") {
  std::ifstream file(SHOAL_DOCS "/algorithms.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  for (const shoal::algorithms::Algorithm& each : shoal::algorithms::all()) {
    const std::string collective(shoal::plan::name_of(each.collective)), name(each.name);
    INFO(collective << " " << name);
    const std::string row = line_with(page, "| " + collective + " | [" + name + "](#");
    if (!has(page, "| " + collective + " | [" + name + "](#")) {  // a plan is a file and a line; the page may follow later
      WARN("docs/algorithms.md has no row for " << collective << " " << name);
      continue;
    }
    CHECK(has(row, "| " + std::string(each.summary) + " |"));
    if (!has(collective, "_v")) CHECK(has(page, "(images/" + collective + "_" + name + ".svg)"));
  }
  std::size_t pictures = 0;
  for (std::size_t at = page.find("](images/"); at != std::string::npos; at = page.find("](images/", at + 1)) {
    const std::string path = page.substr(at + 2, page.find(')', at) - at - 2);
    INFO(path);
    CHECK(std::filesystem::exists(SHOAL_DOCS "/" + path));
    ++pictures;
  }
  CHECK(pictures > 50);
}
