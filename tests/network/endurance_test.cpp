// SPDX-License-Identifier: Apache-2.0
// Field cases FC-28 to FC-31: what crashes leave behind, what many communicators cost, how many descriptors there may be, and
// more ranks than processors.
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "network/hosts.h"
#include "network/rounds.h"

using namespace testing;

namespace {

int entries(const std::filesystem::path& folder) {
  const std::filesystem::recursive_directory_iterator all(folder);
  return static_cast<int>(std::distance(begin(all), end(all)));
}

void limit(int resource, rlim_t soft, rlim_t hard) {
  const rlimit both{soft, hard};
  setrlimit(static_cast<__rlimit_resource_t>(resource), &both);
}

// Every rank sends a number of its own to every other, and hears from all.
std::string all_to_all(const Ranks& who) {
  return with_comm(who, [&](ncclComm_t comm) -> std::string {
    const auto world = static_cast<std::size_t>(who.world);
    std::vector<std::int32_t> out(world), in(world);
    for (std::size_t i = 0; i < world; ++i) out[i] = who.rank * 1000 + static_cast<std::int32_t>(i);
    std::string wrong = must(ncclGroupStart(), "ncclGroupStart");
    for (std::size_t i = 0; i < world; ++i) {
      wrong += must(ncclSend(&out[i], 1, ncclInt32, static_cast<int>(i), comm, nullptr), "ncclSend");
      wrong += must(ncclRecv(&in[i], 1, ncclInt32, static_cast<int>(i), comm, nullptr), "ncclRecv");
    }
    wrong += must(ncclGroupEnd(), "ncclGroupEnd");
    for (std::size_t i = 0; i < world && wrong.empty(); ++i)
      if (in[i] != static_cast<std::int32_t>(i) * 1000 + who.rank) wrong = "wrong number from rank " + std::to_string(i);
    return wrong;
  });
}

// Communicators of the rounds after `round`, alive together.
std::string at_once(IdBoard& board, const Ranks& who, int round, int count) {
  std::vector<ncclComm_t> live;
  std::string wrong;
  for (int i = 1; i <= count && wrong.empty(); ++i) {
    Ranks now = who;
    wrong = board.next(who, round + i, now.id);
    live.push_back(nullptr);
    if (wrong.empty()) wrong = init(now, live.back());
    if (wrong.empty()) wrong = all_reduce_once(live.back(), who, 1000);
  }
  for (ncclComm_t comm : live)
    if (comm != nullptr) wrong += must(ncclCommDestroy(comm), "ncclCommDestroy");
  return wrong;
}

}  // namespace

TEST_CASE("FC-28: four ranks killed at any moment, fifty times, leave nothing behind") {
  std::string name = (std::filesystem::temp_directory_path() / "shoal_killed_XXXXXX").string();
  REQUIRE(mkdtemp(name.data()) != nullptr);
  setenv("TMPDIR", name.c_str(), 1);
  const int before = entries("/dev/shm");
  std::mt19937 random(28);
  for (int round = 0; round < 50; ++round) {
    IdBoard board;
    std::vector<pid_t> ranks;
    for (int rank = 0; rank < 4; ++rank) {
      const pid_t pid = fork();
      if (pid == 0) {
        setenv("SHOAL_LOOPBACK_DISABLE", "1", 1);
        for (int i = 1;; ++i)
          if (!one_round(board, {4, rank, {}}, i, 10'000).empty()) _exit(1);
      }
      ranks.push_back(pid);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 80));
    for (const pid_t pid : ranks) kill(pid, SIGKILL);
    for (const pid_t pid : ranks) waitpid(pid, nullptr, 0);
  }
  CHECK(entries("/dev/shm") == before);
  CHECK(entries(name) == 0);
  CHECK(as_processes(4, transport_variables("shm"), 30, [](const Ranks& who) {
          return with_comm(who, [&](ncclComm_t comm) { return all_reduce_once(comm, who, 1000); });
        }) == "");
  CHECK(entries("/dev/shm") == before);
  CHECK(entries(name) == 0);
  unsetenv("TMPDIR");
  std::filesystem::remove_all(name);
}

TEST_CASE("FC-29: two hundred communicators one after another, and fifty at once, leave what a process holds as it was") {
  const std::string transport = GENERATE("shm", "tcp");
  CAPTURE(transport);
  constexpr int kRounds = 200, kAtOnce = 50;
  IdBoard board;
  CHECK(as_processes(4, transport_variables(transport), 80, [&](const Ranks& who) -> std::string {
          int round = 0;
          Holdings early;
          while (round < kRounds) {
            if (std::string wrong = one_round(board, who, ++round); !wrong.empty()) return wrong;
            if (round == 5) early = settled();
          }
          const std::string grown_in_turn = grown(early, settled());
          Holdings after[4];  // at first the cache of stacks grows with the threads of the root services
          for (Holdings& now : after) {
            if (std::string wrong = at_once(board, who, round, kAtOnce); !wrong.empty()) return wrong;
            round += kAtOnce;
            now = settled();
          }
          return grown_in_turn + grown(after[1], after[3]);
        }) == "");
}

TEST_CASE("FC-30: the soft limit of descriptors is raised to the hard one, and thirty-two ranks find room") {
  const auto [soft, hard] = GENERATE(table<int, int>({{64, 4096}, {256, 256}}));
  CAPTURE(soft, hard);
  CHECK(as_processes(32, transport_variables("tcp"), 80, all_to_all, {}, [soft = soft, hard = hard](int) {
          limit(RLIMIT_NOFILE, static_cast<rlim_t>(soft), static_cast<rlim_t>(hard));
          limit(RLIMIT_MEMLOCK, 65'536, 65'536);
        }) == "");
}

TEST_CASE("FC-30: too few descriptors are an early error that states need and limit") {
  const std::string said =
      as_processes(8, transport_variables("tcp"), 60, all_to_all, {}, [](int) { limit(RLIMIT_NOFILE, 40, 40); });
  CHECK_THAT(said, Catch::Contains("a communicator of 8 ranks needs 40 descriptors here, ") &&
                       Catch::Contains("this process may have 40: raise the limit (ulimit -n)"));
  CHECK_THAT(said, !Catch::Contains("still running"));
}

// The case itself is about time: a thousand of each within 5 s. Ten times that here, for machines that do other things, too; pure
// spinning would take minutes.
TEST_CASE("FC-31: eight ranks on one processor do a thousand small all-reduces in seconds") {
  const std::string transport = GENERATE("shm", "tcp", "threads");
  CAPTURE(transport);
  const auto on_one_processor = [] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    return sched_setaffinity(0, sizeof one, &one) == 0;
  };
  const auto thousand = [&](const Ranks& who) -> std::string {
    if (!on_one_processor()) return "no affinity";
    return with_comm(who, [&](ncclComm_t comm) -> std::string {
      for (int i = 0; i < 1000; ++i)
        if (std::string wrong = all_reduce_once(comm, who, 1); !wrong.empty()) return wrong;
      return "";
    });
  };
  CHECK(run_ranks(transport, 8, 50, thousand) == "");
}
