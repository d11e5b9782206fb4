// SPDX-License-Identifier: Apache-2.0
// Timestamps, dependencies, and how many requests may be on their way.
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "ps/group.h"

namespace {

using testing::Group;
using testing::must;
using testing::pull;
using testing::push;
using testing::run_group;

shoalPsConfig adding(int workers, int servers, std::size_t keys) {
  shoalPsConfig config = testing::config_of(workers, servers, keys);
  config.mode = shoalPsAsync;
  config.optimizer = shoalPsOptimizerAdd;
  return config;
}

}  // namespace

TEST_CASE("ps requests: timestamps count from one, complete in any order of waiting, and may be waited for again") {
  Group group{.config = adding(1, 2, 100), .work = [](shoalPs_t ps, int) -> std::string {
                const std::vector<float> ones(100, 1);
                std::vector<std::vector<float>> seen(20, std::vector<float>(100));
                std::uint64_t timestamp = 0;
                for (std::size_t i = 0; i < seen.size(); ++i) {
                  if (std::string wrong = must(shoalPsPush(ps, 0, 100, ones.data(), &timestamp), "push"); !wrong.empty())
                    return wrong;
                  if (timestamp != 2 * i + 1) return "a push has timestamp " + std::to_string(timestamp);
                  if (std::string wrong = must(shoalPsPull(ps, 0, 100, seen[i].data(), &timestamp), "pull"); !wrong.empty())
                    return wrong;
                  if (timestamp != 2 * i + 2) return "a pull has timestamp " + std::to_string(timestamp);
                }
                for (std::uint64_t t = timestamp; t >= 1; --t)
                  if (std::string wrong = must(shoalPsWait(ps, t), "wait"); !wrong.empty()) return wrong;
                if (std::string wrong = must(shoalPsWait(ps, 7), "wait again"); !wrong.empty()) return wrong;
                for (std::size_t i = 0; i < seen.size(); ++i)
                  if (seen[i] != std::vector<float>(100, static_cast<float>(i + 1)))
                    return "pull " + std::to_string(i) + " is wrong";
                if (shoalPsWait(ps, 0) != ncclInvalidArgument || shoalPsWait(ps, timestamp + 1) != ncclInvalidArgument)
                  return "a wait for nothing succeeded";
                return "";
              }};
  for (const char* transport : {"threads", "tcp"}) {
    INFO(transport);
    CHECK(run_group(transport, group) == "");
  }
}

TEST_CASE("ps requests: what depends on a request is sent when that is complete, and so is what follows") {
  const std::size_t keys = 10;
  for (bool depends : {false, true}) {
    INFO(depends);
    Group group{.config = testing::config_of(2, 2, keys), .work = [=](shoalPs_t ps, int rank) -> std::string {
                  const std::vector<float> ones(keys, 1);
                  std::vector<float> sum(keys);
                  if (rank == 1) {
                    std::this_thread::sleep_for(std::chrono::milliseconds(300));
                    return must(shoalPsClock(ps), "clock");
                  }
                  if (std::string wrong = must(shoalPsClock(ps), "clock"); !wrong.empty()) return wrong;
                  std::uint64_t held = 0, last = 0;
                  // Waits for worker 1's clock.
                  if (std::string wrong = must(shoalPsPull(ps, 0, keys, sum.data(), &held), "pull"); !wrong.empty()) return wrong;
                  if (std::string wrong = must(shoalPsPushAfter(ps, 0, keys, ones.data(), depends ? held : 0, nullptr), "push");
                      !wrong.empty())
                    return wrong;
                  if (std::string wrong = must(shoalPsPush(ps, 0, keys, ones.data(), &last), "push"); !wrong.empty())
                    return wrong;
                  std::this_thread::sleep_for(std::chrono::milliseconds(100));
                  shoalPsStatistics sent{};
                  if (std::string wrong = must(shoalPsStats(ps, -1, &sent), "stats"); !wrong.empty()) return wrong;
                  if (sent.payloadBytesSent != (depends ? 0 : 2 * keys * sizeof(float)))
                    return "sent early: " + std::to_string(sent.payloadBytesSent);
                  if (std::string wrong = must(shoalPsWait(ps, last), "wait"); !wrong.empty()) return wrong;
                  if (shoalPsPullAfter(ps, 0, keys, sum.data(), last + 1, nullptr) != ncclInvalidArgument)
                    return "a dependency on the future was accepted";
                  return must(shoalPsWait(ps, held), "wait");
                }};
    CHECK(run_group("threads", group) == "");
  }
}

TEST_CASE("ps requests: the window bounds what is on its way, down to one") {
  for (int window : {1, 2, 64}) {
    INFO(window);
    Group group{.config = adding(3, 3, 600), .work = [](shoalPs_t ps, int) -> std::string {
                  const std::vector<float> ones(600, 1);
                  std::vector<float> seen(600);
                  for (int i = 0; i < 70; ++i)
                    if (std::string wrong = must(shoalPsPush(ps, 0, 600, ones.data(), nullptr), "push"); !wrong.empty())
                      return wrong;
                  if (std::string wrong = pull(ps, 0, seen); !wrong.empty()) return wrong;
                  for (float value : seen)
                    if (value < 70 || value > 210) return "own pushes are missing";
                  return "";
                }};
    group.config.window = window;
    CHECK(run_group("threads", group, {{"SHOAL_SLICE_BYTES", "1024"}, {"SHOAL_CREDITS", "1"}}) == "");
  }
}

TEST_CASE("ps requests: a worker may leave without ever having asked for anything") {
  for (const char* transport : {"threads", "shm", "tcp"}) {
    INFO(transport);
    CHECK(run_group(transport, {.config = adding(3, 2, 10), .work = [](shoalPs_t, int) { return std::string(); }}) == "");
  }
}

TEST_CASE("ps requests: several threads of a worker may push and pull") {
  Group group{.config = adding(2, 2, 1000), .work = [](shoalPs_t ps, int) -> std::string {
                std::vector<std::string> wrong(4);
                std::vector<std::thread> threads;
                for (std::size_t t = 0; t < wrong.size(); ++t)
                  threads.emplace_back([&, t] {
                    std::vector<float> mine(250, 1), seen(250);
                    for (int i = 0; i < 20 && wrong[t].empty(); ++i) {
                      wrong[t] = push(ps, 250 * t, mine);
                      if (wrong[t].empty()) wrong[t] = pull(ps, 250 * t, seen);
                      if (wrong[t].empty() && (seen[0] < static_cast<float>(i + 1) || seen[0] > 40)) wrong[t] = "lost a push";
                    }
                  });
                for (std::thread& thread : threads) thread.join();
                return wrong[0] + wrong[1] + wrong[2] + wrong[3];
              }};
  CHECK(run_group("threads", group) == "");
}
