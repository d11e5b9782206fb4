// SPDX-License-Identifier: Apache-2.0
// What the flight recorder leaves for people: dumps when something fails or the user asks, traces, and the tool that compares
// them.
#include <nccl.h>
#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "support/ranks.h"
#include "tools/spawn.h"

namespace {

using nlohmann::json;
using testing::Ranks;

// A directory of this test's own, gone at its end.
class Directory {
 public:
  Directory() : path_(std::filesystem::temp_directory_path() / ("shoal-recorder-" + std::to_string(getpid()))) {
    std::filesystem::create_directory(path_);
  }
  ~Directory() { std::filesystem::remove_all(path_); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

json read(const std::string& path) {
  std::ifstream file(path);
  return json::parse(std::string{std::istreambuf_iterator<char>(file), {}}, nullptr, /*allow_exceptions=*/false);
}

ncclResult_t all_reduce(ncclComm_t comm, std::size_t count) {
  std::vector<float> data(count, 1);
  return ncclAllReduce(data.data(), data.data(), count, ncclFloat, ncclSum, comm, nullptr);
}

testing::Variables with(testing::Variables variables, const std::string& name, const std::string& value) {
  variables.emplace_back(name, value);
  return variables;
}

}  // namespace

TEST_CASE("recorder: every rank that fails leaves a dump, and desync names the one that is missing") {
  const Directory directory;
  testing::Variables variables = with(testing::transport_variables("shm"), "SHOAL_DUMP", directory.file("dump.%r.json"));
  variables = with(variables, "SHOAL_TIMEOUT_MS", "500");
  CHECK(testing::as_processes(4, variables, 60, [](const Ranks& ranks) -> std::string {
          ncclComm_t comm = nullptr;
          if (std::string wrong = testing::init(ranks, comm); !wrong.empty()) return wrong;
          for (std::size_t i = 1; i <= 7; ++i)
            if (std::string wrong = testing::must(all_reduce(comm, 10 * i), "all-reduce"); !wrong.empty()) return wrong;
          if (ranks.rank == 3)
            std::this_thread::sleep_for(std::chrono::milliseconds(2000));
          else if (all_reduce(comm, 5000) == ncclSuccess)
            return "success without rank 3";
          ncclCommAbort(comm);
          return "";
        }) == "");
  const json dump = read(directory.file("dump.1.json"));
  REQUIRE_FALSE(dump.is_discarded());
  CHECK(dump["rank"] == 1);
  CHECK(dump["world"] == 4);
  REQUIRE(dump["operations"].size() == 8);
  CHECK(dump["operations"][6]["call"] == "all_reduce #7 of 70 float32, sum");
  CHECK(dump["operations"][6]["state"] == "done");
  CHECK(dump["operations"][6]["bytes"] == 280);
  CHECK_FALSE(dump["operations"][6]["algorithm"].get<std::string>().empty());
  CHECK(dump["operations"][7]["state"] == "running");
  CHECK(dump["failure"].get<std::string>().find("rank 3 (") != std::string::npos);

  const auto told = shoal::testing::spawn(
      {SHOAL_PLAN, "desync", directory.file("dump.0.json"), directory.file("dump.1.json"), directory.file("dump.2.json")});
  INFO(told.out << told.err);
  CHECK(told.code == 0);
  CHECK(told.out.find("verdict: rank 3 (") != std::string::npos);
  const auto as_json =
      shoal::testing::spawn({SHOAL_PLAN, "desync", "--json", directory.file("dump.2.json"), directory.file("dump.0.json")});
  CHECK(json::parse(as_json.out, nullptr, false)["ranks"].size() == 2);
  const auto twice = shoal::testing::spawn({SHOAL_PLAN, "desync", directory.file("dump.2.json"), directory.file("dump.2.json")});
  CHECK(twice.code == 2);
  CHECK(twice.err.find("is a second dump of rank 2") != std::string::npos);
}

TEST_CASE("recorder: SIGUSR2 writes a dump of a program that computes, and the program goes on") {
  const Directory directory;
  CHECK(testing::as_processes(2, with({}, "SHOAL_DUMP", directory.file("dump.%r")), 60, [&](const Ranks& ranks) -> std::string {
          return testing::with_comm(ranks, [&](ncclComm_t comm) -> std::string {
            if (std::string wrong = testing::must(all_reduce(comm, 3), "all-reduce"); !wrong.empty()) return wrong;
            kill(getpid(), SIGUSR2);
            const std::string path = directory.file("dump." + std::to_string(ranks.rank));
            json dump;
            for (int tries = 0; tries < 1000 && !dump.is_object(); ++tries) {
              std::this_thread::sleep_for(std::chrono::milliseconds(10));
              if (std::filesystem::exists(path)) dump = read(path);
            }
            if (!dump.is_object()) return "no dump came";
            if (dump["operations"].size() != 1 || dump["report"]["inside"] != false || dump["failure"] != "") return dump.dump();
            return testing::must(all_reduce(comm, 4), "all-reduce after the dump");
          });
        }) == "");
}

namespace {
volatile sig_atomic_t own_handler_ran = 0;
void own_handler(int) { own_handler_ran = 1; }
}  // namespace

TEST_CASE("recorder: a program's own handler of SIGUSR2 stays") {
  const Directory directory;
  CHECK(testing::in_child({{"SHOAL_DUMP", directory.file("dump")}}, 60, [&]() -> std::string {
          signal(SIGUSR2, own_handler);
          ncclUniqueId id;
          ncclComm_t comm = nullptr;
          if (ncclGetUniqueId(&id) != ncclSuccess || ncclCommInitRank(&comm, 1, id, 0) != ncclSuccess) return "init";
          raise(SIGUSR2);
          if (ncclCommDestroy(comm) != ncclSuccess) return "destroy";
          return own_handler_ran == 1 ? "" : "the program's handler did not run";
        }) == "");
}

TEST_CASE("recorder: a trace is JSON with an event for every operation; an unwritable one is refused by name") {
  const Directory directory;
  CHECK(testing::as_processes(2, with({}, "SHOAL_TRACE", directory.file("trace")), 60, [](const Ranks& ranks) -> std::string {
          return testing::with_comm(ranks, [](ncclComm_t comm) -> std::string {
            for (int i = 0; i < 5; ++i)
              if (std::string wrong = testing::must(all_reduce(comm, 2), "all-reduce"); !wrong.empty()) return wrong;
            return "";
          });
        }) == "");
  for (const char* name : {"trace.0", "trace.1"}) {
    const json events = read(directory.file(name));
    REQUIRE(events.is_array());
    REQUIRE(events.size() == 6);  // the first names the process
    for (std::size_t i = 1; i < events.size(); ++i) {
      CHECK(events[i]["name"] == "all_reduce #" + std::to_string(i) + " of 2 float32, sum");
      CHECK(events[i]["ph"] == "X");
      CHECK(events[i]["dur"].get<double>() >= 0);
      CHECK(events[i]["args"]["state"] == "done");
    }
  }
  CHECK(testing::in_child({{"SHOAL_TRACE", "/nonexistent/trace"}}, 60, []() -> std::string {
          ncclUniqueId id;
          ncclComm_t comm = nullptr;
          if (ncclGetUniqueId(&id) != ncclSuccess) return "id";
          const ncclResult_t result = ncclCommInitRank(&comm, 1, id, 0);
          const std::string text = ncclGetLastError(nullptr);
          return result == ncclSystemError && text.find("/nonexistent/trace.0") != std::string::npos ? "" : text;
        }) == "");
}
