// SPDX-License-Identifier: Apache-2.0
// A host that vanishes without a word: its cable is pulled, so that no connection is ever closed.
#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <thread>

#include "network/hosts.h"
#include "network/rounds.h"

using namespace testing;

TEST_CASE("a host whose cable is pulled is noticed by either side within the time of the signs of life") {
  if (!why_no_hosts().empty()) {
    WARN("SKIP: no network namespaces: " << why_no_hosts());
    return;
  }
  constexpr int kReady = 60, kPulled = 62;  // notes
  const std::string said = with_hosts(80, []() -> std::string {
    const Host a("alpha"), b("beta");
    a.cable("eth0", b, "eth0");
    a.run("ip addr add 10.77.0.1/24 dev eth0");
    b.run("ip addr add 10.77.0.2/24 dev eth0");
    IdBoard board;
    const auto pull = [&] {
      while (board.note_of(kReady) + board.note_of(kReady + 1) < 2) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      a.run("ip link set eth0 down");
      board.note(kPulled, 1);
    };
    const auto body = [&](const Ranks& who) -> std::string {
      ncclComm_t comm = nullptr;
      std::string wrong = init(who, comm);
      if (wrong.empty()) wrong = all_reduce_once(comm, who, 1000);
      if (!wrong.empty()) return "too early: " + wrong;
      board.note(kReady + who.rank, 1);
      while (board.note_of(kPulled) == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      const auto begin = std::chrono::steady_clock::now();
      wrong = all_reduce_once(comm, who, 1000);
      const auto waited = std::chrono::steady_clock::now() - begin;
      ncclCommAbort(comm);
      return wrong + (waited > std::chrono::seconds(45) ? " [too late]" : " [in time]");
    };
    // The cable is pulled by a process of its own, as the ranks are forked from one without threads.
    return as_processes(
        3, {}, 70,
        [&](const Ranks& all) -> std::string {
          return all.rank == 2 ? (pull(), "") : body({2, all.rank, all.id});
        },
        {},
        [&](int rank) {
          if (rank < 2) (rank == 0 ? a : b).enter();
        });
  });
  CAPTURE(said);
  CHECK_THAT(said, Catch::Contains("rank 0: ncclAllReduce: another rank died, left or failed"));
  CHECK_THAT(said, Catch::Contains("rank 1: ncclAllReduce: another rank died, left or failed"));
  CHECK_THAT(said, Catch::Contains("[in time]") && !Catch::Contains("[too late]") && !Catch::Contains("too early"));
}
