// SPDX-License-Identifier: Apache-2.0
// Groups without a barrier: every push counts once, no pull is torn, staleness is bounded.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <thread>

#include "ps/group.h"

namespace {

using testing::Group;
using testing::pull;
using testing::push;
using testing::run_group;

}  // namespace

TEST_CASE("ps async: every push is applied once") {
  const std::size_t keys = 1001;
  const int pushes = 20;
  for (int workers = 1; workers <= 6; ++workers)
    for (int servers : {1, 3}) {
      INFO(workers << " workers, " << servers << " servers");
      Group group{.config = testing::config_of(workers, servers, keys), .work = [=](shoalPs_t ps, int rank) -> std::string {
                    const std::vector<float> ones(keys, 1);
                    for (int i = 0; i < pushes; ++i)
                      if (shoalPsPush(ps, 0, keys, ones.data(), nullptr) != ncclSuccess) return ncclGetLastError(nullptr);
                    // Whoever sees all pushes counts them; the others have left by then or not.
                    std::vector<float> seen(keys);
                    do {
                      if (std::string wrong = pull(ps, 0, seen); !wrong.empty()) return wrong;
                      if (*std::max_element(seen.begin(), seen.end()) > static_cast<float>(workers * pushes)) return "too many";
                      if (seen[0] < pushes) return "rank " + std::to_string(rank) + " does not see its own";
                    } while (*std::min_element(seen.begin(), seen.end()) != static_cast<float>(workers * pushes));
                    return "";
                  }};
      group.config.mode = shoalPsAsync;
      group.config.optimizer = shoalPsOptimizerAdd;
      CHECK(run_group("threads", group) == "");
    }
}

TEST_CASE("ps async: a pull has each push whole or not at all, on every server") {
  // Many messages and several blocks of keys a push; the pulls are cut as finely.
  const std::size_t keys = 300'000;
  for (const char* transport : {"threads", "shm", "tcp"}) {
    INFO(transport);
    Group group{.config = testing::config_of(3, 2, keys), .work = [=](shoalPs_t ps, int rank) -> std::string {
                  const std::vector<float> ones(keys, 1);
                  std::vector<float> seen(keys);
                  for (int i = 0; i < 12; ++i) {
                    if (rank != 2) {
                      if (std::string wrong = push(ps, 0, ones); !wrong.empty()) return wrong;
                      continue;
                    }
                    if (std::string wrong = pull(ps, 0, seen); !wrong.empty()) return wrong;
                    for (std::size_t half : {std::size_t{0}, keys / 2})
                      for (std::size_t k = half; k < half + keys / 2; ++k)
                        if (seen[k] != seen[half])
                          return "torn: " + std::to_string(seen[half]) + " and, at key " + std::to_string(k) + ", " +
                                 std::to_string(seen[k]);
                  }
                  return "";
                }};
    group.config.mode = shoalPsAsync;
    group.config.optimizer = shoalPsOptimizerAdd;
    CHECK(run_group(transport, group, {{"SHOAL_SLICE_BYTES", "16384"}}) == "");
  }
}

TEST_CASE("ps async: over a slowed wire a pull takes its way there and back") {
  using namespace std::chrono_literals;
  const std::size_t keys = 3000;
  for (const char* transport : {"threads", "shm", "tcp"}) {
    INFO(transport);
    Group group{.config = testing::config_of(2, 2, keys), .work = [=](shoalPs_t ps, int) -> std::string {
                  const std::vector<float> ones(keys, 1);
                  std::vector<float> seen(keys);
                  for (int i = 1; i <= 3; ++i) {
                    if (std::string wrong = push(ps, 0, ones); !wrong.empty()) return wrong;
                    const auto start = std::chrono::steady_clock::now();
                    if (std::string wrong = pull(ps, 0, seen); !wrong.empty()) return wrong;
                    if (std::chrono::steady_clock::now() - start < 40ms) return "a pull in less than two latencies";
                    for (const float each : seen)
                      if (each < static_cast<float>(i) || each > 6) return "saw " + std::to_string(each);
                  }
                  return "";
                }};
    group.config.mode = shoalPsAsync;
    group.config.optimizer = shoalPsOptimizerAdd;
    CHECK(run_group(transport, group, {{"SHOAL_SHIM", "latency=20ms,bandwidth=1Gbit,jitter=2ms"}}) == "");
  }
}

TEST_CASE("ps async: descends a quadratic to its minimum") {
  const std::size_t keys = 64;
  Group group{
      .config = testing::config_of(4, 2, keys), .work = [](shoalPs_t ps, int) -> std::string {
        std::vector<double> w(keys), gradient(keys);
        const auto target = [](std::size_t i) { return static_cast<double>(i) - 30.5; };
        std::size_t far = 0;
        // A worker that the others leave behind pushes what it saw long ago: nobody is done before it sees the minimum itself.
        for (int step = 0; step < 20'000; ++step) {
          std::uint64_t timestamp = 0;
          if (shoalPsPull(ps, 0, keys, w.data(), &timestamp) != ncclSuccess || shoalPsWait(ps, timestamp) != ncclSuccess)
            return ncclGetLastError(nullptr);
          for (far = 0; far < keys && std::abs(w[far] - target(far)) < 1e-6;) ++far;
          if (far == keys) return "";
          for (std::size_t i = 0; i < keys; ++i) gradient[i] = (1 + static_cast<double>(i % 4)) * (w[i] - target(i));
          if (shoalPsPush(ps, 0, keys, gradient.data(), &timestamp) != ncclSuccess || shoalPsWait(ps, timestamp) != ncclSuccess)
            return ncclGetLastError(nullptr);
        }
        return "key " + std::to_string(far) + " is " + std::to_string(w[far]);
      }};
  group.config.dtype = ncclFloat64;
  group.config.mode = shoalPsAsync;
  group.config.optimizer = shoalPsOptimizerSgd;
  group.config.learningRate = 0.05;
  CHECK(run_group("threads", group) == "");
}

TEST_CASE("ps ssp: the gap never exceeds the staleness and reaches it, and no read misses an older update") {
  const int workers = 3, iterations = 12;
  for (int staleness : {0, 1, 3}) {
    INFO(staleness);
    // Each worker counts its iterations in its own key of each server.
    const auto keys = static_cast<std::size_t>(2 * workers);
    Group group{.config = testing::config_of(workers, 2, keys), .work = [=](shoalPs_t ps, int rank) -> std::string {
                  std::vector<float> seen(keys);
                  int widest = 0;
                  for (int clock = 0; clock < iterations; ++clock) {
                    if (std::string wrong = pull(ps, 0, seen); !wrong.empty()) return wrong;
                    std::uint64_t own = 0, slowest = 0;
                    if (shoalPsClocks(ps, &own, &slowest) != ncclSuccess) return ncclGetLastError(nullptr);
                    if (own != static_cast<std::uint64_t>(clock)) return "the own clock is " + std::to_string(own);
                    const int gap = clock - static_cast<int>(slowest);
                    if (gap > staleness) return "a gap of " + std::to_string(gap) + " at clock " + std::to_string(clock);
                    widest = std::max(widest, gap);
                    for (std::size_t key = 0; key < keys; ++key) {
                      const bool mine = key % static_cast<std::size_t>(workers) == static_cast<std::size_t>(rank);
                      const auto count = static_cast<int>(seen[key]);
                      if (mine ? count != clock : count < clock - staleness)
                        return "key " + std::to_string(key) + " is " + std::to_string(count) + " at clock " +
                               std::to_string(clock);
                    }
                    if (rank == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
                    for (int server = 0; server < 2; ++server)
                      if (std::string wrong = push(ps, static_cast<std::size_t>(server * workers + rank), {1}); !wrong.empty())
                        return wrong;
                    if (shoalPsClock(ps) != ncclSuccess) return ncclGetLastError(nullptr);
                  }
                  return rank == 0 || widest == staleness ? "" : "the widest gap is " + std::to_string(widest);
                }};
    group.config.mode = shoalPsSsp;
    group.config.staleness = staleness;
    group.config.optimizer = shoalPsOptimizerAdd;
    CHECK(run_group("threads", group) == "");
    if (staleness == 1) CHECK(run_group("tcp", group) == "");
  }
}
