// SPDX-License-Identifier: Apache-2.0
// shoal-perf as its users meet it: the built program alone and under shoal-run.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tools/spawn.h"
#include "tools/well_formed.h"

using namespace shoal::testing;
using Words = std::vector<std::string>;

namespace {

// A folder of a test's own, removed with it.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "shoal-perf-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string operator/(const char* name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

// Tests name one size by -b alone.
void end_where_it_begins(Words& arguments) {
  const auto begin = std::find(arguments.begin(), arguments.end(), "-b");
  if (begin == arguments.end() || std::find(arguments.begin(), arguments.end(), "-e") != arguments.end()) return;
  const std::string size = begin[1];
  arguments.insert(arguments.end(), {"-e", size});
}

Finished perf(Words arguments, const SpawnOptions& options = {}, const std::string& collective = "all_reduce") {
  end_where_it_begins(arguments);
  arguments.insert(arguments.begin(), {SHOAL_PERF, collective});
  return spawn(arguments, options);
}

Finished perf_ranks(int ranks, Words arguments, const SpawnOptions& options = {}, const std::string& collective = "all_reduce") {
  end_where_it_begins(arguments);
  arguments.insert(arguments.begin(), {SHOAL_RUN, "-n", std::to_string(ranks), "--timeout", "50", SHOAL_PERF, collective});
  return spawn(arguments, options);
}

// nccl-tests' names; what has no in-place half; what wants a power of two of ranks.
const Words kCollectives = {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce",   "alltoall",
                            "alltoallv",  "gather",     "scatter",        "sendrecv",  "hypercube"};
bool has_in_place(const std::string& collective) {
  return collective != "alltoall" && collective != "alltoallv" && collective != "sendrecv";
}
bool takes(const std::string& collective, int ranks) { return collective != "hypercube" || (ranks & (ranks - 1)) == 0; }

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

void check_all_right(const Finished& done, std::size_t expected_rows, bool in_place = true) {
  CAPTURE(done.out, done.err);
  CHECK(done.code == 0);
  CHECK(done.err.empty());
  const auto got = rows(done.out);
  CHECK(got.size() == expected_rows);
  for (const Words& row : got) {
    REQUIRE(row.size() == 13);
    CHECK(row[8] == "0");
    CHECK(row[12] == (in_place ? "0" : "N/A"));
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

TEST_CASE("every collective is right: worlds 1 to 4, odd sizes, every root, buffers off their alignment") {
  for (const std::string& collective : kCollectives)
    for (const int ranks : {1, 2, 3, 4}) {
      if (!takes(collective, ranks)) continue;
      CAPTURE(collective, ranks);
      const bool rooted =
          collective == "broadcast" || collective == "reduce" || collective == "gather" || collective == "scatter";
      const auto done = perf({"-g", std::to_string(ranks), "-b", "1", "-e", "100003", "-i", "33334", "-d", "int8", "-u", "3",
                              "-r", "-1", "-n", "1", "-w", "0"},
                             {}, collective);
      check_all_right(done, rooted ? 4 * static_cast<std::size_t>(ranks) : 4, has_in_place(collective));
    }
}

TEST_CASE("every collective is right with every type, and with every operation where there is one") {
  for (const std::string& collective : kCollectives) {
    CAPTURE(collective);
    const bool reduces = collective == "all_reduce" || collective == "reduce" || collective == "reduce_scatter";
    const auto done =
        perf({"-g", "4", "-d", "all", "-o", "all", "-b", "5001", "-e", "5001", "-r", "1", "-n", "1", "-w", "0"}, {}, collective);
    check_all_right(done, reduces ? 72 : 12, has_in_place(collective));
  }
}

TEST_CASE("every collective is right between processes, in groups of calls, on streams and on threads") {
  for (const std::string& collective : kCollectives) {
    CAPTURE(collective);
    check_all_right(perf_ranks(2, {"-b", "70001", "-n", "2", "-m", "3"}, {}, collective), 1, has_in_place(collective));
    check_all_right(perf({"-g", "2", "-t", "2", "-b", "4K", "-n", "2", "--stream"}, {}, collective), 1, has_in_place(collective));
  }
}

TEST_CASE("a spoilt result of every collective is reported, in and out of place") {
  for (const std::string& collective : kCollectives) {
    CAPTURE(collective);
    const auto done =
        perf({"-g", "2", "-b", "4K", "-n", "1", "-r", "1"}, {.environment = {{"SHOAL_PERF_FLIP", "1"}}}, collective);
    CAPTURE(done.out, done.err);
    CHECK(done.code == 7);
    REQUIRE(rows(done.out).size() == 1);
    CHECK(rows(done.out)[0][8] == "1");
    CHECK(rows(done.out)[0][12] == (has_in_place(collective) ? "1" : "N/A"));
    CHECK(done.out.find(" FAILED") != std::string::npos);
  }
}

TEST_CASE("columns that do not apply: redop none, root -1, N/A in place") {
  const auto done = perf({"-g", "2", "-b", "4K", "-n", "1"}, {}, "alltoall");
  REQUIRE(rows(done.out).size() == 1);
  const Words row = rows(done.out)[0];
  CHECK(row[0] == "4096");
  CHECK(row[1] == "512");
  CHECK(row[3] == "none");
  CHECK(row[4] == "-1");
  for (const std::size_t column : {9, 10, 11, 12}) CHECK(row[column] == "N/A");
}

TEST_CASE("buffers of every kind, and inputs rewritten before each call") {
  for (const char* kind : {"private", "mapped", "registered", "window"}) {
    CAPTURE(kind);
    check_all_right(perf({"-g", "2", "-b", "3M", "-n", "2", "--mem", kind}), 1);
    check_all_right(perf_ranks(2, {"-b", "70001", "-n", "2", "--mem", kind, "--fresh"}, {}, "all_gather"), 1);
  }
  for (const char* number : {"0", "1", "2"}) check_all_right(perf({"-g", "2", "-b", "4K", "-n", "2", "-R", number}), 1);
  const auto fresh = perf({"-g", "3", "-b", "4K", "-n", "4", "-m", "2", "--fresh", "-I", "1", "-C", "1"});
  CHECK(fresh.code == 0);
  REQUIRE(rows(fresh.out).size() == 1);
  CHECK(rows(fresh.out)[0].size() == 21);
  CHECK(fresh.out.find("# Buffers: private, inputs rewritten before each timed call") != std::string::npos);
}

TEST_CASE("cycles repeat the whole sweep") { check_all_right(perf({"-b", "8", "-e", "64", "-f", "8", "-n", "1", "-N", "3"}), 6); }

TEST_CASE("all-to-all-v takes nccl-tests' variables: a spread, or a file of bytes") {
  const auto size_of = [](const Finished& done) {
    CAPTURE(done.out, done.err);
    REQUIRE(rows(done.out).size() == 1);
    return rows(done.out)[0][0];
  };
  const Folder folder;
  std::ofstream(folder / "m.txt") << "16 1000 0\n0 0 32\n64 7 48\n";
  const auto run = [](Words arguments, std::vector<std::pair<std::string, std::string>> variables) {
    arguments.insert(arguments.end(), {"-g", "3", "-n", "1", "-d", "int8"});
    return perf(arguments, {.environment = std::move(variables)}, "alltoallv");
  };
  const auto even = run({"-b", "3000"}, {{"NCCL_TESTS_ALLTOALLV_SPREAD", "0"}});
  check_all_right(even, 1, false);
  CHECK(size_of(even) == "2976");  // 3 blocks of 992
  const auto matrix = run({"-b", "2K"}, {{"NCCL_TESTS_ALLTOALLV_MATRIX_FILE", folder / "m.txt"}});
  check_all_right(matrix, 1, false);
  CHECK(size_of(matrix) == "1008");  // what rank 0 sends: 16 + 992
  const auto small = run({"-b", "512"}, {{"NCCL_TESTS_ALLTOALLV_MATRIX_FILE", folder / "m.txt"}});
  CHECK(small.code == 255);
  CHECK(small.err == "shoal-perf: -e/--maxbytes 512: a rank of NCCL_TESTS_ALLTOALLV_MATRIX_FILE sends or receives 1008 bytes\n");
  const auto sweep = run({"-b", "2K", "-e", "4K"}, {{"NCCL_TESTS_ALLTOALLV_MATRIX_FILE", folder / "m.txt"}});
  CHECK(sweep.code == 255);
  CHECK(sweep.err.find("-b/--minbytes 2K: must be -e/--maxbytes 4K") != std::string::npos);
}

TEST_CASE("a hypercube of three ranks is refused") {
  const auto done = perf({"-g", "3", "-b", "8"}, {}, "hypercube");
  CHECK(done.code == 255);
  CHECK(done.err == "shoal-perf: hypercube: needs a power of two of ranks, there are 3\n");
}

TEST_CASE("a run's JSON is the baseline of the next: good, worse, and of another kind") {
  const Folder folder;
  const std::string then = folder / "then.json";
  const Words sizes = {"-g", "2", "-b", "1K", "-e", "4K", "-f", "4", "-n", "5"};
  const auto with = [&sizes](Words more) {
    more.insert(more.begin(), sizes.begin(), sizes.end());
    return more;
  };
  REQUIRE(perf(with({"-J", then})).code == 0);
  const auto good = perf(with({"--baseline", then, "--tolerance", "1000000"}));
  CAPTURE(good.out, good.err);
  CHECK(good.code == 0);
  CHECK(rows(good.out).size() == 2);  // the comparison is comments
  CHECK(good.out.find("# Baseline: 2 calls compared, 0 worse: OK\n") != std::string::npos);
  // A baseline that took a picosecond a call: whatever is measured now is worse.
  auto json = nlohmann::json::parse(text_of(then));
  for (auto& row : json["results"]) row["out_of_place"]["time"] = 1e-6;
  std::ofstream(folder / "fast.json") << json;
  const auto worse = perf(with({"--baseline", folder / "fast.json", "--tolerance", "2"}));
  CHECK(worse.code == 1);
  CHECK(worse.out.find("# Baseline: 2 calls compared, 2 worse: FAILED\n") != std::string::npos);
  const auto other = perf({"-g", "2", "-b", "8", "-n", "1", "--baseline", then});
  CHECK(other.code == 1);
  CHECK(other.out.find("no call of this run is in it") != std::string::npos);
  const auto world = perf({"-g", "3", "-b", "1K", "-n", "1", "--baseline", then});
  CHECK(world.code == 255);
  CHECK(world.err == "shoal-perf: --baseline " + then + ": is of 2 ranks, this run has 3\n");
  const auto missing = perf({"-b", "8", "--baseline", folder / "no.json"});
  CHECK(missing.code == 255);
  CHECK(missing.err == "shoal-perf: --baseline " + (folder / "no.json") + ": No such file or directory\n");
}

TEST_CASE("pictures: of this run, of this and others, of others alone") {
  const Folder folder;
  const std::string then = folder / "then.json", picture = folder / "p.svg";
  REQUIRE(perf({"-g", "2", "-b", "64", "-e", "4K", "-f", "8", "-n", "2", "-J", then, "--plot", picture}).code == 0);
  CHECK(fault_in(text_of(picture)) == "");
  CHECK(text_of(picture).find(">in place<") != std::string::npos);
  REQUIRE(perf_ranks(2, {"-b", "64", "-e", "4K", "-f", "8", "-n", "2", "--plot", picture, "--plot-with", then}).code == 0);
  CHECK(fault_in(text_of(picture)) == "");
  for (const char* name : {">this run<", ">then<", "all_reduce, 2 ranks"})
    CHECK(text_of(picture).find(name) != std::string::npos);
  const auto alone = spawn({SHOAL_PERF, "--plot", folder / "q.svg", "--plot-with", then, "--plot-with", then});
  CAPTURE(alone.err);
  CHECK(alone.code == 0);
  CHECK(alone.out.empty());
  CHECK(fault_in(text_of(folder / "q.svg")) == "");
  std::ofstream(folder / "bad.json") << "{}";
  const auto bad = spawn({SHOAL_PERF, "--plot", folder / "q.svg", "--plot-with", folder / "bad.json"});
  CHECK(bad.code == 255);
  CHECK(bad.err == "shoal-perf: --plot-with " + (folder / "bad.json") + ": has no list \"results\": is no file of -J\n");
  const auto nowhere = spawn({SHOAL_PERF, "--plot", folder / "no/q.svg", "--plot-with", then});
  CHECK(nowhere.code == 1);
  CHECK(nowhere.err == "shoal-perf: --plot " + (folder / "no/q.svg") + ": No such file or directory\n");
}

TEST_CASE("a calibration is measured, written and taken by the next job; one rank or threads have nothing to measure") {
  const Folder folder;
  const std::string file = folder / "here.txt";
  for (const char* disable : {"0", "1"}) {
    const auto done = spawn({SHOAL_RUN, "-n", "3", "--timeout", "50", SHOAL_PERF, "--calibrate", file},
                            {.environment = {{"NCCL_SHM_DISABLE", disable}}});
    CAPTURE(done.out, done.err);
    CHECK(done.code == 0);
    CHECK(text_of(file) == done.out);
    CHECK(done.out.find(*disable == '0' ? "within.transport = shm\n" : "within.transport = tcp\n") != std::string::npos);
    for (const char* key : {"within.latency_s = ", "within.bandwidth_Bps = ", "copy_Bps = ", "reduce_Bps = "})
      CHECK(done.out.find(key) != std::string::npos);
    CHECK(done.out.find("between.") == std::string::npos);
    check_all_right(
        perf_ranks(3, {"-b", "70001", "-n", "2"}, {.environment = {{"SHOAL_CALIBRATION", file}, {"NCCL_SHM_DISABLE", disable}}}),
        1);
  }
  // Ranks that pretend to be of two hosts.
  const auto hosts = spawn({SHOAL_RUN, "-n", "2", "--timeout", "50", "sh", "-c",
                            "NCCL_HOSTID=host$SHOAL_RANK exec \"$0\" --calibrate \"$1\"", SHOAL_PERF, file});
  CAPTURE(hosts.out, hosts.err);
  CHECK(hosts.code == 0);
  CHECK(hosts.out.find("between.latency_s = ") != std::string::npos);
  CHECK(hosts.out.find("within.") == std::string::npos);

  const auto alone = spawn({SHOAL_PERF, "--calibrate", file});
  CHECK(alone.code == 255);
  CHECK(alone.err.find("shoal-perf: --calibrate " + file + ": needs at least 2 ranks") == 0);
  const auto threads = spawn({SHOAL_PERF, "--calibrate", file, "-t", "2"});
  CHECK(threads.code == 255);
  CHECK(threads.err.find("-t and -g must be 1") != std::string::npos);
  std::ofstream(file) << "within.latency_s = soon\n";
  const auto malformed = perf_ranks(2, {"-b", "8"}, {.environment = {{"SHOAL_CALIBRATION", file}}});
  CHECK(malformed.code != 0);
  CHECK(malformed.err.find("SHOAL_CALIBRATION='" + file + "': line 1: within.latency_s = 'soon': ") != std::string::npos);
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
  const Folder folder;
  const std::string path = folder / "r.json", nowhere = folder / "no/r.json";
  const auto done = perf({"-g", "2", "-b", "8", "-e", "64", "-f", "8", "-n", "2", "-J", path});
  CHECK(done.code == 0);
  const auto json = nlohmann::json::parse(text_of(path));
  CHECK(json["results"].size() == 2);
  CHECK(json["results"][1]["size"] == 64);
  CHECK(json["config"]["devices"].size() == 2);
  CHECK(json["out_of_bounds"]["okay"] == "true");
  CHECK(json["config"]["collective"] == "all_reduce");
  const auto refused = perf({"-b", "8", "-J", nowhere});
  CHECK(refused.code == 255);
  CHECK(refused.err == "shoal-perf: -J/--output_file " + nowhere + ": No such file or directory\n");
}

TEST_CASE("it answers to a collective's name") {
  const auto name_of = [](const std::string& collective) {
    return std::filesystem::path(SHOAL_PERF).replace_filename(collective + "_perf").string();
  };
  for (const std::string& collective : kCollectives)
    check_all_right(spawn({name_of(collective), "-b", "64", "-e", "64", "-n", "1"}), 1, has_in_place(collective));
  const std::string named = name_of("all_reduce");
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
