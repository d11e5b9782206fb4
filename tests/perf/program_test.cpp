// SPDX-License-Identifier: Apache-2.0
// shoal-perf as its users meet it: the built program alone and under shoal-run.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tools/spawn.h"

using namespace shoal::testing;
using Words = std::vector<std::string>;

namespace {

// Tests name one size by -b alone.
void end_where_it_begins(Words& arguments) {
  const auto begin = std::find(arguments.begin(), arguments.end(), "-b");
  if (begin == arguments.end() || std::find(arguments.begin(), arguments.end(), "-e") != arguments.end()) return;
  const std::string size = begin[1];
  arguments.insert(arguments.end(), {"-e", size});
}

Finished perf(Words arguments, const SpawnOptions& options = {}) {
  end_where_it_begins(arguments);
  arguments.insert(arguments.begin(), {SHOAL_PERF, "all_reduce"});
  return spawn(arguments, options);
}

Finished perf_ranks(int ranks, Words arguments, const SpawnOptions& options = {}) {
  end_where_it_begins(arguments);
  arguments.insert(arguments.begin(), {SHOAL_RUN, "-n", std::to_string(ranks), "--timeout", "50", SHOAL_PERF, "all_reduce"});
  return spawn(arguments, options);
}

// As scripts written for nccl-tests read rows: neither comments nor blank lines, split at white space.
std::vector<Words> rows(const std::string& out) {
  std::vector<Words> result;
  for (const std::string& line : lines_of(out)) {
    std::istringstream stream(line);
    Words row;
    for (std::string field; stream >> field;) row.push_back(field);
    if (!row.empty() && row[0][0] != '#') result.push_back(row);
  }
  return result;
}

void check_all_right(const Finished& done, std::size_t expected_rows) {
  CAPTURE(done.out, done.err);
  CHECK(done.code == 0);
  CHECK(done.err.empty());
  const auto got = rows(done.out);
  CHECK(got.size() == expected_rows);
  for (const Words& row : got) {
    REQUIRE(row.size() == 13);
    CHECK(row[8] == "0");
    CHECK(row[12] == "0");
  }
  CHECK(done.out.find("# Out of bounds values : 0 OK") != std::string::npos);
}

}  // namespace

TEST_CASE("one rank alone") { check_all_right(perf({"-b", "8", "-e", "1M", "-f", "16", "-n", "3"}), 5); }

TEST_CASE("ranks of one thread, of several threads, and initialised in parallel") {
  check_all_right(perf({"-b", "8", "-e", "64K", "-f", "32", "-n", "3", "-g", "3"}), 3);
  check_all_right(perf({"-b", "8", "-e", "64K", "-f", "32", "-n", "3", "-t", "3"}), 3);
  check_all_right(perf({"-b", "8", "-e", "64K", "-f", "32", "-n", "3", "-t", "2", "-g", "2", "-p", "1"}), 3);
}

TEST_CASE("ranks of several processes; only rank 0 prints, without a label") {
  for (const int ranks : {2, 3}) {
    const auto done = perf_ranks(ranks, {"-b", "4", "-e", "1M", "-f", "64", "-n", "3"});
    check_all_right(done, 4);
    CHECK(done.out.find("[1]") == std::string::npos);
    CHECK(std::count(done.out.begin(), done.out.end(), '\n') == 3 + 2 + ranks + 1 + 1 + 3 + 4 + 5 - 1);
  }
}

TEST_CASE("every type with every operation is right") {
  check_all_right(perf({"-g", "3", "-d", "all", "-o", "all", "-b", "1000", "-e", "1000", "-n", "1", "-w", "0"}), 72);
}

TEST_CASE("sums of 8 ranks of small floats, averages and products are never counted wrong") {
  for (const std::string type : {"half", "bfloat16", "f8e4m3", "f8e5m2"}) {
    check_all_right(perf({"-g", "8", "-d", type, "-o", "all", "-b", "10000", "-n", "1", "-w", "0", "-c", "3"}), 6);
  }
}

TEST_CASE("odd counts, unaligned buffers, groups of calls, streams, zero bytes") {
  check_all_right(perf({"-g", "2", "-b", "1001", "-e", "1001", "-d", "int8", "-u", "1", "-n", "2"}), 1);
  check_all_right(perf({"-g", "2", "-b", "4K", "-m", "4", "-n", "2"}), 1);
  check_all_right(perf({"-g", "2", "-b", "4K", "--stream", "-n", "4"}), 1);
  check_all_right(perf({"-g", "2", "-b", "4K", "--stream", "-z", "2", "-n", "4"}), 1);
  check_all_right(perf({"-g", "2", "-b", "0", "-e", "8", "-i", "4", "-n", "2"}), 3);
}

TEST_CASE("without a check the column reads N/A and the footer is good") {
  const auto done = perf({"-b", "8", "-n", "2", "-c", "0"});
  CHECK(done.code == 0);
  REQUIRE(rows(done.out).size() == 1);
  CHECK(rows(done.out)[0][8] == "N/A");
  CHECK(rows(done.out)[0][12] == "N/A");
}

TEST_CASE("a flipped element is found, wherever it is: #wrong, FAILED and exit code 7") {
  for (const char* rank : {"0", "1"}) {
    for (const std::string operation : {"sum", "avg"}) {
      const auto done = perf({"-g", "2", "-b", "8", "-n", "1", "-o", operation}, {.environment = {{"SHOAL_PERF_FLIP", rank}}});
      CAPTURE(done.out, done.err);
      CHECK(done.code == 7);
      REQUIRE(rows(done.out).size() == 1);
      CHECK(rows(done.out)[0][8] == "1");
      CHECK(rows(done.out)[0][12] == "1");
      CHECK(done.out.find("# Out of bounds values : 2 FAILED") != std::string::npos);
    }
  }
}

TEST_CASE("a flipped element of another process gives all processes exit code 7") {
  const auto done = perf_ranks(2, {"-b", "8", "-n", "1"}, {.environment = {{"SHOAL_PERF_FLIP", "1"}}});
  CHECK(done.code == 7);
  CHECK(done.out.find("FAILED") != std::string::npos);
}

TEST_CASE("bandwidth below 90 % of NCCL_TESTS_MIN_BW is exit code 7") {
  const auto slow = perf({"-g", "2", "-b", "8", "-n", "1"}, {.environment = {{"NCCL_TESTS_MIN_BW", "1e9"}}});
  CHECK(slow.code == 7);
  CHECK(slow.out.find("FAILED") != std::string::npos);
  CHECK(perf({"-g", "2", "-b", "8", "-n", "1"}, {.environment = {{"NCCL_TESTS_MIN_BW", "0"}}}).code == 0);
  const auto wrong = perf({"-b", "8"}, {.environment = {{"NCCL_TESTS_MIN_BW", "fast"}}});
  CHECK(wrong.code == 255);
  CHECK(wrong.err == "shoal-perf: NCCL_TESTS_MIN_BW fast: is not a bandwidth in GB/s\n");
}

TEST_CASE("extra columns, memory line and averages") {
  for (const char* average : {"0", "1", "2", "3"}) {
    const auto done =
        perf({"-g", "2", "-b", "64", "-n", "5", "-I", "1", "-K", "1", "-S", "1", "-C", "1", "-M", "1", "-a", average});
    CAPTURE(done.out, done.err);
    CHECK(done.code == 0);
    REQUIRE(rows(done.out).size() == 1);
    CHECK(rows(done.out)[0].size() == 23);
    CHECK(done.out.find("# Memory: ") != std::string::npos);
  }
}

TEST_CASE("a compressed all-reduce has ratio and error in two columns a half, and ranks that agree") {
  for (const int ranks : {1, 3}) {
    const auto done = perf_ranks(ranks, {"-b", "4096", "-e", "64K", "-f", "16", "-n", "3", "--compressor", "fp16:feedback=1"});
    CAPTURE(done.out, done.err);
    CHECK(done.code == 0);
    REQUIRE(rows(done.out).size() == 2);
    for (const Words& row : rows(done.out)) {
      REQUIRE(row.size() == 17);
      CHECK(row[8] == "0");
      CHECK(row[13] == "2.00");
      CHECK(std::stod(row[14]) > 1e-5);
      CHECK(std::stod(row[14]) < 1e-3);
    }
  }
}

TEST_CASE("the JSON file holds what the table shows") {
  std::string pattern = (std::filesystem::temp_directory_path() / "shoal-perf-XXXXXX").string();
  const std::filesystem::path directory = ::mkdtemp(pattern.data());
  const std::string path = (directory / "r.json").string();
  const auto done = perf({"-g", "2", "-b", "8", "-e", "64", "-f", "8", "-n", "2", "-J", path});
  CHECK(done.code == 0);
  std::ifstream file(path);
  const auto json = nlohmann::json::parse(file);
  CHECK(json["results"].size() == 2);
  CHECK(json["results"][1]["size"] == 64);
  CHECK(json["config"]["devices"].size() == 2);
  CHECK(json["out_of_bounds"]["okay"] == "true");
  std::filesystem::remove_all(directory);
  const auto refused = perf({"-b", "8", "-J", path});
  CHECK(refused.code == 255);
  CHECK(refused.err == "shoal-perf: -J/--output_file " + path + ": No such file or directory\n");
}

TEST_CASE("it answers to a collective's name") {
  const std::string named = std::filesystem::path(SHOAL_PERF).replace_filename("all_reduce_perf").string();
  check_all_right(spawn({named, "-b", "8", "-e", "8", "-n", "1"}), 1);
  const auto refused = spawn({named, "all_reduce"});
  CHECK(refused.code == 255);
  CHECK(refused.err == "shoal-perf: all_reduce: is no option of this program\n");
}

TEST_CASE("nonsense is one line from rank 0 and a failing exit code, for any number of ranks") {
  for (const Words& arguments :
       std::vector<Words>{{"-b", "8x"}, {"-g", "0"}, {"-t", "300"}, {"-G", "1"}, {"-b", "1T", "-e", "1T"}, {"--nosuch"}}) {
    const auto alone = perf(arguments);
    const auto many = perf_ranks(4, arguments);
    CAPTURE(arguments, many.err);
    CHECK((alone.code == 255 || alone.code == 5));
    CHECK(lines_of(alone.err).size() == 1);
    CHECK(many.code == alone.code);
    const auto lines = lines_of(many.err);
    CHECK(std::count_if(lines.begin(), lines.end(), [](const std::string& line) { return line.find("shoal-perf: ") == 0; }) == 1);
    CHECK(std::none_of(lines.begin(), lines.end(), [](const std::string& line) { return line.find('[') == 0; }));
  }
}

TEST_CASE("help comes from rank 0 alone and exits 0") {
  const auto done = perf_ranks(3, {"--help"});
  CHECK(done.code == 0);
  CHECK(done.out.find("--minbytes") != std::string::npos);
  CHECK(done.out.find("[1]") == std::string::npos);
}

TEST_CASE("a rank that dies ends the job with a line of each survivor and within the timeout") {
  // Rank 1 is killed while the sweep would go on for ever.
  SpawnOptions options;
  bool sent = false;
  options.watch = [&](pid_t, const std::string& out) {
    if (sent || rows(out).size() < 2) return;
    for (const std::string& line : lines_of(out)) {
      const auto at = line.find("Pid ");
      if (line.find("#  Rank  1 ") == 0 && at != std::string::npos) {
        ::kill(static_cast<pid_t>(std::stol(line.substr(at + 4))), SIGKILL);
        sent = true;
      }
    }
  };
  const auto done = perf_ranks(2, {"-b", "4K", "-n", "10", "-N", "0"}, options);
  CAPTURE(done.err);
  CHECK(sent);
  CHECK((done.code == 128 + SIGKILL || done.code == 3));
  CHECK(done.err.find("Test NCCL failure in ") != std::string::npos);
  CHECK(done.err.find("rank 0: '") != std::string::npos);
}
