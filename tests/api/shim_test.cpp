// SPDX-License-Identifier: Apache-2.0
// SHOAL_SHIM through the public API: lower bounds of time only, exact sums, and what happens to those who do not wait.
#include <nccl.h>
#include <shoal/shoal.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "support/ranks.h"

namespace {

using testing::must;
using testing::Ranks;
using testing::with_comm;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

std::string run_slowed(const std::string& transport, const char* shim, int world,
                       const std::function<std::string(const Ranks&)>& body, const std::vector<int>& may_die = {}) {
  testing::Variables variables = testing::transport_variables(transport);
  variables.emplace_back("SHOAL_SHIM", shim);
  return transport == "threads" ? testing::as_threads(world, variables, 120, body)
                                : testing::as_processes(world, variables, 120, body, may_die);
}

// What rank 0 sends begins with its clock, which is rank 1's too.
std::string send_stamped(ncclComm_t comm, std::size_t words) {
  std::vector<std::int64_t> data(words, 5);
  data[0] = Clock::now().time_since_epoch().count();
  return must(ncclSend(data.data(), words, ncclInt64, 1, comm, nullptr), "send");
}

std::string receive_not_before(ncclComm_t comm, std::size_t words, std::chrono::nanoseconds least) {
  std::vector<std::int64_t> data(words);
  if (std::string wrong = must(ncclRecv(data.data(), words, ncclInt64, 0, comm, nullptr), "recv"); !wrong.empty()) return wrong;
  const std::chrono::nanoseconds took = Clock::now().time_since_epoch() - std::chrono::nanoseconds(data[0]);
  if (took < least) return "came after " + std::to_string(took.count()) + " ns, " + std::to_string(least.count()) + " expected";
  return std::all_of(data.begin() + 1, data.end(), [](std::int64_t each) { return each == 5; }) ? "" : "other data";
}

// A collective that each rank needs something of every other for, begun and ended at these times here, cannot have ended anywhere
// before the last rank's news could come.
std::string not_before_the_last(ncclComm_t comm, Clock::time_point begun, Clock::time_point ended,
                                std::chrono::nanoseconds least) {
  std::int64_t last = begun.time_since_epoch().count();
  if (std::string wrong = must(ncclAllReduce(&last, &last, 1, ncclInt64, ncclMax, comm, nullptr), "the last beginning");
      !wrong.empty())
    return wrong;
  const std::chrono::nanoseconds took = ended.time_since_epoch() - std::chrono::nanoseconds(last);
  // The last itself may find the news of all others there.
  return took < least && begun.time_since_epoch().count() != last ? "over after " + std::to_string(took.count()) + " ns" : "";
}

const char* const kTransports[] = {"threads", "shm", "tcp"};

}  // namespace

TEST_CASE("shim: a message takes its latency, and a MiB the time of its bytes, on every transport") {
  for (const char* transport : kTransports) {
    INFO(transport);
    CHECK(run_slowed(transport, "latency=30ms,bandwidth=100Mbit,jitter=5ms", 2, [](const Ranks& ranks) {
            return with_comm(ranks, [&](ncclComm_t comm) -> std::string {
              for (int round = 0; round < 5; ++round)
                if (std::string wrong = ranks.rank == 0 ? send_stamped(comm, 1) : receive_not_before(comm, 1, 30ms);
                    !wrong.empty())
                  return wrong;
              constexpr std::size_t kWords = (1 << 20) / sizeof(std::int64_t);
              return ranks.rank == 0 ? send_stamped(comm, kWords) : receive_not_before(comm, kWords, 30ms + 83886us);
            });
          }) == "");
  }
}

TEST_CASE("shim: sums are exact, jitter or not, and no all-reduce is faster than one message") {
  for (const char* transport : kTransports)
    for (const int world : {2, 3}) {
      INFO(transport << ", world " << world);
      CHECK(run_slowed(transport, "latency=5ms,bandwidth=1Gbit,jitter=5ms,seed=9", world, [](const Ranks& ranks) {
              return with_comm(ranks, [&](ncclComm_t comm) -> std::string {
                for (const std::size_t n : {std::size_t{1}, std::size_t{1000}, std::size_t{200001}}) {
                  std::vector<std::int64_t> data(n);
                  for (std::size_t i = 0; i < n; ++i) data[i] = static_cast<std::int64_t>(i) * (ranks.rank + 1);
                  const auto start = Clock::now();
                  if (std::string wrong =
                          must(ncclAllReduce(data.data(), data.data(), n, ncclInt64, ncclSum, comm, nullptr), "all-reduce");
                      !wrong.empty())
                    return wrong;
                  const auto end = Clock::now();
                  const std::int64_t factor = ranks.world * (ranks.world + 1) / 2;
                  for (std::size_t i = 0; i < n; ++i)
                    if (data[i] != static_cast<std::int64_t>(i) * factor) return "element " + std::to_string(i);
                  if (std::string wrong = not_before_the_last(comm, start, end, 5ms); !wrong.empty()) return wrong;
                }
                return "";
              });
            }) == "");
    }
}

TEST_CASE("shim: rank 0's holds for all") {
  const auto before = [](int rank) {
    if (rank != 0) unsetenv("SHOAL_SHIM");
  };
  testing::Variables variables = testing::transport_variables("shm");
  variables.emplace_back("SHOAL_SHIM", "latency=50ms");
  CHECK(testing::as_processes(
            3, variables, 60,
            [](const Ranks& ranks) {
              return with_comm(ranks, [&](ncclComm_t comm) -> std::string {
                const auto start = Clock::now();
                std::string wrong = must(shoalBarrier(comm, nullptr), "barrier");
                return wrong.empty() ? not_before_the_last(comm, start, Clock::now(), 50ms) : wrong;
              });
            },
            {}, before) == "");
}

TEST_CASE("shim: a plan over mapped memory is refused") {
  testing::Variables variables = testing::transport_variables("shm");
  variables.emplace_back("SHOAL_SHIM", "latency=1ms");
  variables.emplace_back("NCCL_ALGO", "all_reduce:one_shot");
  CHECK(testing::as_processes(2, variables, 60, [](const Ranks& ranks) -> std::string {
          ncclComm_t comm = nullptr;
          if (std::string wrong = testing::init(ranks, comm); !wrong.empty()) return wrong;
          float value = 1;
          const ncclResult_t result = ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, comm, nullptr);
          const std::string text = ncclGetLastError(comm);
          ncclCommAbort(comm);
          if (result != ncclInvalidUsage) return std::string("one_shot under a shim: ") + ncclGetErrorString(result);
          return text.find("one_shot") != std::string::npos ? "" : text;
        }) == "");
}

TEST_CASE("shim: a malformed one is an error of the first communicator") {
  CHECK(testing::in_child({{"SHOAL_SHIM", "latency=fast"}}, 60, []() -> std::string {
          ncclComm_t comm = nullptr;
          ncclUniqueId id{};
          ncclResult_t result = ncclGetUniqueId(&id);
          if (result == ncclSuccess) result = ncclCommInitRank(&comm, 1, id, 0);
          if (result != ncclInvalidArgument) return std::string("not refused: ") + ncclGetErrorString(result);
          const std::string text = ncclGetLastError(nullptr);
          return text.find("SHOAL_SHIM='latency=fast'") != std::string::npos ? "" : text;
        }) == "");
}

TEST_CASE("shim: abort does not wait for what is on its way") {
  for (const char* transport : kTransports) {
    INFO(transport);
    CHECK(run_slowed(transport, "latency=50s", 2, [](const Ranks& ranks) -> std::string {
            ncclComm_t comm = nullptr;
            if (std::string wrong = testing::init(ranks, comm); !wrong.empty()) return wrong;
            std::int64_t value = 0;
            const auto start = Clock::now();
            if (ranks.rank == 0) {
              if (std::string wrong = must(ncclSend(&value, 1, ncclInt64, 1, comm, nullptr), "send"); !wrong.empty())
                return wrong;
              std::this_thread::sleep_for(2s);
            } else {
              std::thread aborter([&] {
                std::this_thread::sleep_for(1s);
                ncclCommAbort(comm);
              });
              const ncclResult_t result = ncclRecv(&value, 1, ncclInt64, 0, comm, nullptr);
              aborter.join();
              if (result == ncclSuccess) return "a message came before its time";
              if (Clock::now() - start > 20s) return "the abort waited";
              return "";
            }
            ncclCommAbort(comm);
            return "";
          }) == "");
  }
}

TEST_CASE("shim: what a rank sent before it died arrives in its time, and then its death is told") {
  for (const char* transport : {"shm", "tcp"}) {
    INFO(transport);
    CHECK(run_slowed(transport, "latency=1500ms", 2,
                     [](const Ranks& ranks) -> std::string {
                       ncclComm_t comm = nullptr;
                       if (std::string wrong = testing::init(ranks, comm); !wrong.empty()) return wrong;
                       std::int64_t value = ranks.rank * 77;
                       if (ranks.rank == 1) {
                         if (std::string wrong = must(ncclSend(&value, 1, ncclInt64, 0, comm, nullptr), "send"); !wrong.empty())
                           return wrong;
                         kill(getpid(), SIGKILL);
                       }
                       std::string wrong = must(ncclRecv(&value, 1, ncclInt64, 1, comm, nullptr), "recv of what was sent");
                       if (wrong.empty() && value != 77) wrong = "other data";
                       if (wrong.empty() && ncclRecv(&value, 1, ncclInt64, 1, comm, nullptr) != ncclRemoteError)
                         wrong = "the death is no remote error";
                       const std::string text = ncclGetLastError(comm);
                       if (wrong.empty() && text.find("rank 1") == std::string::npos) wrong = text;
                       ncclCommAbort(comm);
                       return wrong;
                     },
                     {1}) == "");
  }
}

TEST_CASE("shim: a rank may leave while its last messages are on their way") {
  for (const char* transport : kTransports) {
    INFO(transport);
    CHECK(run_slowed(transport, "latency=1500ms", 3, [](const Ranks& ranks) {
            return with_comm(ranks, [&](ncclComm_t comm) -> std::string {
              std::int64_t value = 7;
              if (ranks.rank == 0) {
                ncclGroupStart();
                for (int peer : {1, 2}) ncclSend(&value, 1, ncclInt64, peer, comm, nullptr);
                return must(ncclGroupEnd(), "sends");
              }
              value = 0;
              if (std::string wrong = must(ncclRecv(&value, 1, ncclInt64, 0, comm, nullptr), "recv"); !wrong.empty())
                return wrong;
              return value == 7 ? "" : "other data";
            });
          }) == "");
  }
}
