// SPDX-License-Identifier: Apache-2.0
// What tests of a communicator's life do again and again. Texts as in support/ranks.h: empty, or what is wrong.
#pragma once

#include <nccl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "support/ranks.h"

namespace testing {

using Clock = std::chrono::steady_clock;

// What must return within a second, on a machine that does other things, too.
inline constexpr double kSoon = 3;

inline double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }
inline void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

// "" for this code, else what came instead.
inline std::string expect(ncclResult_t result, ncclResult_t expected, const std::string& what) {
  if (result == expected) return "";
  return what + ": " + ncclGetErrorString(result) + " instead of " + ncclGetErrorString(expected) + ": " +
         ncclGetLastError(nullptr) + "\n";
}

// The last error of this thread must name this.
inline std::string expect_text(const std::string& part) {
  const std::string text = ncclGetLastError(nullptr);
  return text.find(part) != std::string::npos ? "" : "\"" + part + "\" is not in: " + text + "\n";
}

inline std::string expect_place(ncclComm_t comm, int rank, int world) {
  int is_rank = -1, is_world = -1;
  if (std::string wrong = must(ncclCommUserRank(comm, &is_rank), "rank"); !wrong.empty()) return wrong;
  if (std::string wrong = must(ncclCommCount(comm, &is_world), "count"); !wrong.empty()) return wrong;
  if (is_rank == rank && is_world == world) return "";
  return "rank " + std::to_string(is_rank) + " of " + std::to_string(is_world) + " instead of " + std::to_string(rank) + " of " +
         std::to_string(world) + "\n";
}

// Until the communicator is no longer in progress, or some time has passed.
inline ncclResult_t settled(ncclComm_t comm, double seconds = 20) {
  const auto start = Clock::now();
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress && seconds_since(start) < seconds) {
    if (const ncclResult_t asked = ncclCommGetAsyncError(comm, &state); asked != ncclSuccess) return asked;
    sleep_ms(1);
  }
  return state;
}

// An all-gather of everybody's number must give exactly these; then an all-reduce their sum, a million times over.
inline std::string expect_members(ncclComm_t comm, int mine, const std::vector<int>& all) {
  std::vector<int> gathered(all.size(), -1);
  const auto wait = [comm](ncclResult_t result) { return result == ncclInProgress ? settled(comm) : result; };
  if (std::string wrong = must(wait(ncclAllGather(&mine, gathered.data(), 1, ncclInt, comm, nullptr)), "all-gather");
      !wrong.empty())
    return wrong;
  if (gathered != all) {
    std::string text = "members are";
    for (const int each : gathered) text += " " + std::to_string(each);
    return text + "\n";
  }
  int sum = 0;
  for (const int each : all) sum += each;
  std::vector<int> data(1'000'000, mine);
  if (std::string wrong =
          must(wait(ncclAllReduce(data.data(), data.data(), data.size(), ncclInt, ncclSum, comm, nullptr)), "all-reduce");
      !wrong.empty())
    return wrong;
  return data == std::vector<int>(data.size(), sum) ? "" : "wrong sums\n";
}

// Small all-reduces until one fails, for at most some seconds.
inline ncclResult_t until_failure(ncclComm_t comm, double seconds = 20) {
  const auto start = Clock::now();
  float x = 1;
  ncclResult_t result = ncclSuccess;
  while (result == ncclSuccess && seconds_since(start) < seconds)
    result = ncclAllReduce(&x, &x, 1, ncclFloat, ncclMax, comm, nullptr);
  return result;
}

// The end of this process, once every rank has come to its first call of until_failure: none is still being made.
inline void die_after_first_call(ncclComm_t comm) {
  float x = 1;
  ncclAllReduce(&x, &x, 1, ncclFloat, ncclMax, comm, nullptr);
  kill(getpid(), SIGKILL);
}

inline ncclConfig_t non_blocking() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return config;
}

}  // namespace testing
