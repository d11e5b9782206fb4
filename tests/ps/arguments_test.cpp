// SPDX-License-Identifier: Apache-2.0
// What is refused, and what the refusal says.
#include <catch2/catch.hpp>
#include <cmath>

#include "ps/group.h"

namespace {

using testing::Group;
using testing::must;
using testing::run_group;

// "" if the call failed with this code and its text has the words.
std::string refused(ncclResult_t result, ncclResult_t code, const std::string& words) {
  if (result == ncclSuccess) return "accepted where it should say: " + words;
  const std::string text = ncclGetLastError(nullptr);
  if (result != code) return std::string("code ") + ncclGetErrorString(result) + ": " + text;
  return text.find(words) != std::string::npos ? "" : "\"" + words + "\" is not in: " + text;
}

}  // namespace

TEST_CASE("ps arguments: a wrong configuration is refused by the name of its field") {
  const std::vector<std::size_t> too_few{3, 3}, too_many{3, 8};
  const auto change = [](auto&& f) {
    shoalPsConfig config = testing::config_of(2, 2, 10);
    f(config);
    return config;
  };
  const std::vector<std::pair<shoalPsConfig, std::string>> cases{
      {change([](auto& c) { c.workers = 0; }), "config.workers is 0, must be at least 1"},
      {change([](auto& c) { c.servers = -1; }), "config.servers is -1, must be at least 1"},
      {change([](auto& c) { c.workers = 70'000; }), "70000 workers and 2 servers are more than 65536 ranks"},
      {change([](auto& c) { c.dtype = ncclInt8; }), "config.dtype is int8, must be float32 or float64"},
      {change([](auto& c) { c.dtype = ncclBfloat16; }), "config.dtype is bfloat16"},
      {change([](auto& c) { c.keys = SIZE_MAX / 4; }), "more than memory can hold"},
      {change([](auto& c) { c.staleness = 1; }), "config.staleness is 1: only shoalPsSsp has one"},
      {change([](auto& c) { c.mode = shoalPsSsp, c.optimizer = shoalPsOptimizerAdd, c.staleness = -2; }),
       "config.staleness is -2"},
      {change([](auto& c) { c.mode = shoalPsAsync; }), "shoalPsOptimizerSum, which needs shoalPsSync"},
      {change([](auto& c) { c.learningRate = 0.1; }), "config.learningRate is 0.1: only shoalPsOptimizerSgd has one"},
      {change([](auto& c) { c.optimizer = shoalPsOptimizerSgd, c.learningRate = NAN; }), "config.learningRate is nan"},
      {change([&](auto& c) { c.shares = too_few.data(); }), "config.shares add up to 6, config.keys is 10"},
      {change([&](auto& c) { c.shares = too_many.data(); }), "config.shares[1] is 8: more than the 7 of 10 keys that are left"},
  };
  CHECK(testing::in_child({}, 60, [&]() -> std::string {
          ncclUniqueId id;
          if (ncclGetUniqueId(&id) != ncclSuccess) return "no unique id";
          std::string wrong;
          shoalPs_t ps = nullptr;
          std::size_t first = 0, count = 0;
          for (const auto& [config, words] : cases) {
            wrong += refused(shoalPsInit(&ps, id, 0, &config), ncclInvalidArgument, words);
            wrong += refused(shoalPsServeInBackground(&ps, id, 2, &config), ncclInvalidArgument, words);
            wrong += refused(shoalPsShare(&config, 0, &first, &count), ncclInvalidArgument, words);
          }
          shoalPsConfig good = testing::config_of(2, 2, 10);
          wrong += refused(shoalPsInit(nullptr, id, 0, &good), ncclInvalidArgument, "ps is NULL");
          wrong += refused(shoalPsInit(&ps, id, 0, nullptr), ncclInvalidArgument, "config is NULL");
          wrong += refused(shoalPsInit(&ps, id, 4, &good), ncclInvalidArgument, "rank is 4, must be 0 .. 3");
          wrong += refused(shoalPsInit(&ps, id, -1, &good), ncclInvalidArgument, "rank is -1, must be 0 .. 3");
          wrong += refused(shoalPsServeInBackground(&ps, id, 1, &good), ncclInvalidArgument, "rank is 1, a worker's");
          wrong += refused(shoalPsShare(&good, 2, &first, &count), ncclInvalidArgument, "server is 2, must be 0 .. 1");
          wrong += refused(shoalPsBalancedShares(10, 0, 1, &first), ncclInvalidArgument, "workerMachines is 0");
          wrong += refused(shoalPsBalancedShares(10, 1, -1, &first), ncclInvalidArgument, "spareMachines is -1");
          good.window = -1;
          wrong += refused(shoalPsInit(&ps, id, 0, &good), ncclInvalidArgument, "config.window is -1");
          good.window = 0;
          good.optimizer = shoalPsOptimizerCustom;
          wrong += refused(shoalPsInit(&ps, id, 2, &good), ncclInvalidArgument, "config.update is NULL");
          ncclUniqueId garbage{};
          wrong += refused(shoalPsInit(&ps, garbage, 0, &good), ncclInvalidArgument, "not a unique id");
          if (ps != nullptr) wrong += "a failed call left a handle";
          return wrong;
        }) == "");
}

TEST_CASE("ps arguments: shares that can be asked for") {
  shoalPsConfig config = testing::config_of(1, 3, 10);
  std::size_t first = 0, count = 0;
  REQUIRE(shoalPsShare(&config, 1, &first, &count) == ncclSuccess);
  CHECK(first == 3);
  CHECK(count == 3);
  const std::vector<std::size_t> shares{1, 0, 9};
  config.shares = shares.data();
  REQUIRE(shoalPsShare(&config, 2, &first, &count) == ncclSuccess);
  CHECK(first == 1);
  CHECK(count == 9);
}

TEST_CASE("ps arguments: requests outside the keys, and calls that are the other kind's") {
  Group group{.config = testing::config_of(1, 1, 10),
              .work = [](shoalPs_t ps, int) -> std::string {
                float value = 0;
                std::uint64_t timestamp = 77;
                std::string wrong = refused(shoalPsPush(ps, 8, 3, &value, &timestamp), ncclInvalidArgument,
                                            "keys 8 and 3 more from there on are not all below config.keys, 10");
                wrong += refused(shoalPsPull(ps, 11, 0, &value, &timestamp), ncclInvalidArgument, "keys 11 and 0 more");
                wrong += refused(shoalPsPull(ps, SIZE_MAX, 2, &value, &timestamp), ncclInvalidArgument, "are not all below");
                wrong += refused(shoalPsPush(ps, 0, 1, nullptr, &timestamp), ncclInvalidArgument, "values is NULL");
                wrong += refused(shoalPsPull(ps, 0, 1, nullptr, &timestamp), ncclInvalidArgument, "out is NULL");
                wrong += refused(shoalPsPullAfter(ps, 0, 1, &value, 1, &timestamp), ncclInvalidArgument,
                                 "after is 1: the last timestamp that was given is 0");
                wrong += refused(shoalPsWait(ps, 1), ncclInvalidArgument, "timestamp is 1");
                wrong += refused(shoalPsServe(ps), ncclInvalidUsage, "ps is a worker's");
                shoalPsStatistics statistics;
                wrong += refused(shoalPsStats(ps, 2, &statistics), ncclInvalidArgument, "peer is 2, must be -1 .. 1");
                wrong += refused(shoalPsStats(ps, 0, nullptr), ncclInvalidArgument, "statistics is NULL");
                wrong += refused(shoalPsClock(nullptr), ncclInvalidArgument, "ps is NULL");
                wrong += refused(shoalPsClock(reinterpret_cast<shoalPs_t>(&value)), ncclInvalidArgument, "is not live");
                if (timestamp != 77) wrong += "a failed call gave a timestamp";
                return wrong;
              },
              .served =
                  [](shoalPs_t ps, int) {
                    float value = 0;
                    std::string wrong = refused(shoalPsServe(ps), ncclInvalidUsage, "has served already");
                    wrong += refused(shoalPsPush(ps, 0, 1, &value, nullptr), ncclInvalidUsage, "ps is a server's");
                    wrong += refused(shoalPsClock(ps), ncclInvalidUsage, "ps is a server's");
                    return wrong;
                  }};
  CHECK(run_group("threads", group) == "");
}

TEST_CASE("ps arguments: ranks that do not agree are told in what") {
  const std::vector<std::size_t> shares{4, 6};
  struct Odd {
    const char* words;
    std::function<void(shoalPsConfig&)> change;
  };
  for (const Odd& odd :
       {Odd{"config.keys is 9 here, 10 at rank 0", [](auto& c) { c.keys = 9; }},
        Odd{"config.dtype is float64 here, float32 at rank 0", [](auto& c) { c.dtype = ncclFloat64; }},
        Odd{"config.mode is 1 here, 0 at rank 0", [](auto& c) { c.mode = shoalPsAsync, c.optimizer = shoalPsOptimizerAdd; }},
        Odd{"config.shares[0] is 4 here, 5 at rank 0", [&](auto& c) { c.shares = shares.data(); }},
        Odd{"config.workers is 1 here, 2 at rank 0", [](auto& c) { c.workers = 1, c.servers = 3; }}}) {
    INFO(odd.words);
    CHECK(testing::as_threads(4, {{"SHOAL_TIMEOUT_MS", "20000"}}, 60, [&](const testing::Ranks& ranks) -> std::string {
            shoalPsConfig config = testing::config_of(2, 2, 10);
            if (ranks.rank == 3) odd.change(config);
            shoalPs_t ps = nullptr;
            ncclResult_t result = shoalPsInit(&ps, ranks.id, ranks.rank, &config);
            if (ranks.rank == 3) return refused(result, ncclInvalidUsage, odd.words);
            // The others hear of it, if not yet here then in their first call.
            float value = 0;
            std::uint64_t timestamp = 0;
            if (result == ncclSuccess && ranks.rank == 2) result = shoalPsServe(ps);
            if (result == ncclSuccess && ranks.rank < 2) result = shoalPsPull(ps, 9, 1, &value, &timestamp);
            if (result == ncclSuccess && ranks.rank < 2) result = shoalPsWait(ps, timestamp);
            const std::string wrong = result == ncclSuccess ? "success" : "";
            return wrong + must(shoalPsAbort(ps), "abort");
          }) == "");
  }
}
