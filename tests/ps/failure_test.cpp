// SPDX-License-Identifier: Apache-2.0
// What the others see when a rank dies, aborts, is too slow, or when the update function fails: an error that names it, soon.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "ps/group.h"

namespace {

using testing::must;
using testing::Ranks;

struct Ended {
  ncclResult_t result = ncclSuccess;
  std::string text;
};

Ended ended(ncclResult_t result) { return {result, result == ncclSuccess ? "" : ncclGetLastError(nullptr)}; }

// Synchronous iterations until one fails, or `most` are done.
Ended iterate(shoalPs_t ps, std::size_t keys, int most) {
  std::vector<float> values(keys, 1);
  for (int i = 0; i < most; ++i) {
    std::uint64_t pushed = 0, pulled = 0;
    for (const Ended& each :
         {ended(shoalPsPush(ps, 0, keys, values.data(), &pushed)), ended(shoalPsWait(ps, pushed)), ended(shoalPsClock(ps)),
          ended(shoalPsPull(ps, 0, keys, values.data(), &pulled)), ended(shoalPsWait(ps, pulled))})
      if (each.result != ncclSuccess) return each;
  }
  return {};
}

std::string names(const Ended& end, ncclResult_t code, const std::string& words) {
  if (end.result != code) return std::string("ended with ") + ncclGetErrorString(end.result) + ": " + end.text;
  return end.text.find(words) != std::string::npos ? "" : "\"" + words + "\" is not in: " + end.text;
}

// Serves or iterates for ever; how it ended.
Ended part(const shoalPsConfig& config, const Ranks& ranks, shoalPs_t& ps, int most = 1'000'000'000) {
  if (const Ended joined = ended(shoalPsInit(&ps, ranks.id, ranks.rank, &config)); joined.result != ncclSuccess) return joined;
  return ranks.rank < config.workers ? iterate(ps, config.keys, most) : ended(shoalPsServe(ps));
}

void die_soon() {
  std::thread([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    kill(getpid(), SIGKILL);
  }).detach();
}

}  // namespace

TEST_CASE("ps failure: a killed worker or server is named by all others, wherever they wait") {
  for (const char* transport : {"shm", "tcp"})
    for (int victim : {1, 3})
      for (std::size_t keys : {std::size_t{5}, std::size_t{200'000}}) {
        INFO(transport << ", rank " << victim << ", " << keys << " keys");
        const shoalPsConfig config = testing::config_of(2, 2, keys);
        CHECK(testing::as_processes(4, testing::transport_variables(transport), 30,
                                    [&](const Ranks& ranks) -> std::string {
                                      if (ranks.rank == victim) die_soon();
                                      shoalPs_t ps = nullptr;
                                      const Ended end = part(config, ranks, ps);
                                      const std::string wrong =
                                          names(end, ncclRemoteError, "rank " + std::to_string(victim) + " ");
                                      if (!wrong.empty()) return wrong;
                                      if (ranks.rank < 2 && shoalPsClock(ps) != ncclRemoteError) return "a later call succeeded";
                                      return must(shoalPsAbort(ps), "abort");
                                    },
                                    {victim}) == "");
      }
}

TEST_CASE("ps failure: a worker that leaves its process without leaving the group is named") {
  const shoalPsConfig config = testing::config_of(2, 1, 100);
  CHECK(testing::as_processes(3, {}, 30,
                              [&](const Ranks& ranks) -> std::string {
                                shoalPs_t ps = nullptr;
                                const Ended end = part(config, ranks, ps, ranks.rank == 1 ? 5 : 1'000'000'000);
                                if (ranks.rank == 1) _exit(0);
                                const std::string wrong = names(end, ncclRemoteError, "rank 1 ");
                                return wrong.empty() ? must(shoalPsAbort(ps), "abort") : wrong;
                              },
                              {1}) == "");
}

TEST_CASE("ps failure: a worker that ends its iteration too late is named as the one that all wait for") {
  for (const char* transport : {"threads", "shm", "tcp"}) {
    INFO(transport);
    const shoalPsConfig config = testing::config_of(3, 2, 100);
    testing::Variables variables = testing::transport_variables(transport);
    variables.emplace_back("SHOAL_TIMEOUT_MS", "700");
    const auto body = [&](const Ranks& ranks) -> std::string {
      shoalPs_t ps = nullptr;
      Ended end = part(config, ranks, ps, ranks.rank == 1 ? 2 : 1'000'000'000);
      if (ranks.rank == 1) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2500));
        return must(shoalPsAbort(ps), "abort");
      }
      std::string wrong = end.text.find("waits for rank 1 (") == std::string::npos ? "got: " + end.text : "";
      if (wrong.empty() && end.text.find("which is at clock 2 and has sent nothing for") == std::string::npos)
        wrong = "got: " + end.text;
      return wrong + must(shoalPsAbort(ps), "abort");
    };
    CHECK((transport == std::string("threads") ? testing::as_threads(5, variables, 30, body)
                                               : testing::as_processes(5, variables, 30, body)) == "");
  }
}

TEST_CASE("ps failure: a server that does not serve is named by those who wait for it") {
  const shoalPsConfig config = testing::config_of(1, 2, 100);
  CHECK(testing::as_threads(3, {{"SHOAL_TIMEOUT_MS", "500"}}, 30, [&](const Ranks& ranks) -> std::string {
          shoalPs_t ps = nullptr;
          if (ranks.rank == 2) {
            if (std::string wrong = must(shoalPsInit(&ps, ranks.id, 2, &config), "init"); !wrong.empty()) return wrong;
            std::this_thread::sleep_for(std::chrono::milliseconds(2500));
            return must(shoalPsAbort(ps), "abort");
          }
          const Ended end = part(config, ranks, ps);
          std::string wrong = end.text.find("nothing from") == std::string::npos ? "got: " + end.text : "";
          if (ranks.rank == 0 && end.result != ncclSystemError) wrong += "code " + std::to_string(end.result);
          if (end.text.find("rank 2 (") == std::string::npos) wrong += "rank 2 is not in: " + end.text;
          return wrong + must(shoalPsAbort(ps), "abort");
        }) == "");
}

TEST_CASE("ps failure: abort frees a blocked call of this rank, and the others learn who aborted") {
  for (const char* transport : {"threads", "tcp"}) {
    INFO(transport);
    const shoalPsConfig config = testing::config_of(2, 1, 100);
    CHECK(testing::run_ranks(transport, 3, 30, [&](const Ranks& ranks) -> std::string {
            shoalPs_t ps = nullptr;
            if (ranks.rank == 2) {
              const std::string wrong = names(part(config, ranks, ps), ncclRemoteError, "rank 0");
              return wrong + must(shoalPsAbort(ps), "abort");
            }
            if (std::string wrong = must(shoalPsInit(&ps, ranks.id, ranks.rank, &config), "init"); !wrong.empty()) return wrong;
            if (ranks.rank == 1) {  // never ends its iteration
              std::this_thread::sleep_for(std::chrono::milliseconds(1000));
              const std::string wrong = names(ended(shoalPsClock(ps)), ncclRemoteError, "rank 0");
              return wrong + must(shoalPsAbort(ps), "abort");
            }
            std::thread aborter([&] {
              std::this_thread::sleep_for(std::chrono::milliseconds(300));
              (void)shoalPsAbort(ps);
            });
            const Ended end = iterate(ps, 100, 10);
            aborter.join();
            return names(end, ncclInvalidUsage, "aborted here");
          }) == "");
  }
}

TEST_CASE("ps failure: an update function that refuses ends the group, with its answer") {
  shoalPsConfig config = testing::config_of(2, 2, 10);
  config.optimizer = shoalPsOptimizerCustom;
  config.update = [](size_t first, size_t, void*, const void*, int, uint64_t iteration, void*) {
    return first == 5 && iteration == 1 ? 42 : 0;
  };
  for (const char* transport : {"threads", "shm"}) {
    INFO(transport);
    CHECK(testing::run_ranks(transport, 4, 30, [&](const Ranks& ranks) -> std::string {
            shoalPs_t ps = nullptr;
            const Ended end = part(config, ranks, ps);
            const std::string wrong =
                names(end, ncclInvalidUsage, "rank 3: the update function returned 42 for keys 5 .. 9 of iteration 1");
            return wrong + must(shoalPsAbort(ps), "abort");
          }) == "");
  }
}

TEST_CASE("ps failure: a server that is destroyed without having served ends the group") {
  const shoalPsConfig config = testing::config_of(1, 1, 10);
  CHECK(testing::as_threads(2, {}, 30, [&](const Ranks& ranks) -> std::string {
          shoalPs_t ps = nullptr;
          if (ranks.rank == 1) {
            if (std::string wrong = must(shoalPsInit(&ps, ranks.id, 1, &config), "init"); !wrong.empty()) return wrong;
            return names(ended(shoalPsDestroy(ps)), ncclInvalidUsage, "has not served");
          }
          const std::string wrong = names(part(config, ranks, ps), ncclRemoteError, "rank 1");
          return wrong + must(shoalPsAbort(ps), "abort");
        }) == "");
}

TEST_CASE("ps failure: nothing is left behind") {
  CHECK(testing::in_child({}, 60, [&]() -> std::string {
          const int names_before = testing::shared_memory_names();
          int descriptors = 0;
          for (int round = 0; round < 4; ++round) {
            ncclUniqueId id;
            if (std::string wrong = must(ncclGetUniqueId(&id), "unique id"); !wrong.empty()) return wrong;
            const shoalPsConfig config = testing::config_of(1, 2, 1000);
            std::vector<shoalPs_t> servers(2, nullptr);
            for (int i = 0; i < 2; ++i)
              if (std::string wrong =
                      must(shoalPsServeInBackground(&servers[static_cast<std::size_t>(i)], id, 1 + i, &config), "serve");
                  !wrong.empty())
                return wrong;
            shoalPs_t worker = nullptr;
            if (std::string wrong = must(shoalPsInit(&worker, id, 0, &config), "init"); !wrong.empty()) return wrong;
            if (const Ended end = iterate(worker, 1000, 3); end.result != ncclSuccess) return end.text;
            if (std::string wrong = must(shoalPsDestroy(worker), "destroy"); !wrong.empty()) return wrong;
            for (shoalPs_t server : servers)
              if (std::string wrong = must(shoalPsDestroy(server), "destroy"); !wrong.empty()) return wrong;
            if (shoalPsDestroy(worker) != ncclInvalidArgument) return "a handle was destroyed twice";
            // The root service ends by itself, a moment later.
            for (int i = 0; i < 200 && round > 0 && testing::open_descriptors() > descriptors; ++i)
              std::this_thread::sleep_for(std::chrono::milliseconds(10));
            if (round == 0) std::this_thread::sleep_for(std::chrono::milliseconds(500));
            if (round == 0) descriptors = testing::open_descriptors();
            if (testing::open_descriptors() > descriptors) return "descriptors are left";
          }
          return testing::shared_memory_names() == names_before ? "" : "shared memory is left";
        }) == "");
}
