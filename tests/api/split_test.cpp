// SPDX-License-Identifier: Apache-2.0
// ncclCommSplit: who comes together and in which order, and that no mistake, death or absence of one rank leaves another waiting.
#include <arpa/inet.h>
#include <limits.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "api/communicators.h"

namespace {

using testing::Ranks;

const char* const kTransports[] = {"threads", "shm", "tcp"};

std::string split(ncclComm_t comm, int colour, int key, ncclComm_t& child) {
  return testing::must(ncclCommSplit(comm, colour, key, &child, nullptr), "split");
}

// The child's members (numbers in the parent, in the child's order), then its end.
std::string check_and_destroy(ncclComm_t child, int mine, const std::vector<int>& members) {
  if (child == nullptr) return "no communicator\n";
  for (std::size_t i = 0; i < members.size(); ++i)
    if (members[i] == mine)
      if (std::string wrong = testing::expect_place(child, static_cast<int>(i), static_cast<int>(members.size())); !wrong.empty())
        return wrong;
  if (std::string wrong = testing::expect_members(child, mine, members); !wrong.empty()) return wrong;
  return testing::must(ncclCommDestroy(child), "destroy");
}

std::string fc08(const Ranks& ranks, ncclComm_t comm) {
  const int me = ranks.rank;
  ncclComm_t child = nullptr;
  // Even ranks 7, odd ones INT_MAX, in reversed order.
  if (std::string wrong = split(comm, me % 2 == 0 ? 7 : INT_MAX, -me, child); !wrong.empty()) return wrong;
  if (std::string wrong = check_and_destroy(child, me, me % 2 == 0 ? std::vector{4, 2, 0} : std::vector{5, 3, 1}); !wrong.empty())
    return "parity: " + wrong;
  // One in no child: NULL and success.
  child = comm;
  if (std::string wrong = split(comm, me == 3 ? NCCL_SPLIT_NOCOLOR : 0, me, child); !wrong.empty()) return wrong;
  if (me == 3 && child != nullptr) return "a communicator without a colour";
  if (me != 3)
    if (std::string wrong = check_and_destroy(child, me, {0, 1, 2, 4, 5}); !wrong.empty()) return "no colour: " + wrong;
  // A wrong colour, of a member and of the leader: that rank is told, and nobody waits.
  for (const int odd : {3, 0}) {
    const ncclResult_t result = ncclCommSplit(comm, me == odd ? -2 : 0, 0, &child, nullptr);
    if (std::string wrong = testing::expect(result, me == odd ? ncclInvalidArgument : ncclRemoteError, "colour -2");
        !wrong.empty())
      return wrong;
  }
  // Equal keys keep the parent's order.
  if (std::string wrong = split(comm, 5, 1, child); !wrong.empty()) return wrong;
  if (std::string wrong = check_and_destroy(child, me, {0, 1, 2, 3, 4, 5}); !wrong.empty()) return "equal keys: " + wrong;
  // Each its own.
  if (std::string wrong = split(comm, me, 0, child); !wrong.empty()) return wrong;
  if (std::string wrong = check_and_destroy(child, me, {me}); !wrong.empty()) return "alone: " + wrong;
  // The parent is as good as before.
  return testing::expect_members(comm, me, {0, 1, 2, 3, 4, 5});
}

}  // namespace

TEST_CASE("FC-08: colours and keys, no colour, a wrong one, equal keys, everybody alone") {
  for (const char* transport : kTransports) {
    INFO(transport);
    CHECK(testing::run_ranks(transport, 6, 60, [](const Ranks& ranks) {
            return testing::with_comm(ranks, [&](ncclComm_t comm) { return fc08(ranks, comm); });
          }) == "");
  }
}

TEST_CASE("split: the error of a wrong colour names the rank and the value") {
  CHECK(testing::run_ranks("shm", 3, 60, [](const Ranks& ranks) {
          return testing::with_comm(ranks, [&](ncclComm_t comm) -> std::string {
            ncclComm_t child = nullptr;
            ncclCommSplit(comm, ranks.rank == 1 ? -2 : 0, 0, &child, nullptr);
            if (ranks.rank != 1)
              if (std::string wrong = testing::expect_text("rank 1 ("); !wrong.empty()) return wrong;
            return testing::expect_text("color is -2, must be 0 or more");
          });
        }) == "");
}

TEST_CASE("split: children are split again, and every one lives on without its parents") {
  for (const char* transport : kTransports) {
    INFO(transport);
    CHECK(testing::run_ranks(transport, 5, 60, [](const Ranks& ranks) -> std::string {
            ncclComm_t comm = nullptr, half = nullptr, pair = nullptr;
            if (std::string wrong = testing::init(ranks, comm); !wrong.empty()) return wrong;
            const int me = ranks.rank;
            // {4, 3, 2} and {1, 0}, by descending rank; then without 4.
            if (std::string wrong = split(comm, me < 2 ? 0 : 1, -me, half); !wrong.empty()) return wrong;
            if (std::string wrong = testing::must(ncclCommDestroy(comm), "destroy the parent"); !wrong.empty()) return wrong;
            if (std::string wrong = split(half, me == 4 ? NCCL_SPLIT_NOCOLOR : 0, 0, pair); !wrong.empty()) return wrong;
            if (me != 4)
              if (std::string wrong = check_and_destroy(pair, me, me < 2 ? std::vector{1, 0} : std::vector{3, 2}); !wrong.empty())
                return wrong;
            return check_and_destroy(half, me, me < 2 ? std::vector{1, 0} : std::vector{4, 3, 2});
          }) == "");
  }
}

TEST_CASE("split: one thread splits several ranks within a group, and the handles are there at its end") {
  CHECK(testing::in_child({}, 60, []() -> std::string {
          ncclComm_t comms[4], children[4] = {};
          if (std::string wrong = testing::must(ncclCommInitAll(comms, 4, nullptr), "init"); !wrong.empty()) return wrong;
          ncclGroupStart();
          for (int i = 0; i < 4; ++i)
            if (std::string wrong = split(comms[i], i % 2, 0, children[i]); !wrong.empty()) return wrong;
          for (ncclComm_t child : children)
            if (child != nullptr) return "filled before the end of the group";
          if (std::string wrong = testing::must(ncclGroupEnd(), "group"); !wrong.empty()) return wrong;
          float x[4] = {1, 2, 4, 8};
          ncclGroupStart();
          for (int i = 0; i < 4; ++i) ncclAllReduce(&x[i], &x[i], 1, ncclFloat, ncclSum, children[i], nullptr);
          if (std::string wrong = testing::must(ncclGroupEnd(), "all-reduce"); !wrong.empty()) return wrong;
          if (x[0] != 5 || x[1] != 10 || x[2] != 5 || x[3] != 10) return "wrong sums";
          ncclGroupStart();
          for (int i = 0; i < 4; ++i) {
            ncclCommDestroy(children[i]);
            ncclCommFinalize(comms[i]);
          }
          if (std::string wrong = testing::must(ncclGroupEnd(), "end of the children"); !wrong.empty()) return wrong;
          for (ncclComm_t comm : comms)
            if (std::string wrong = testing::must(ncclCommDestroy(comm), "destroy"); !wrong.empty()) return wrong;
          return "";
        }) == "");
}

TEST_CASE("split: a group holds splits or calls, not both") {
  CHECK(testing::in_child({}, 60, []() -> std::string {
          ncclComm_t comms[1], child = nullptr;
          if (std::string wrong = testing::must(ncclCommInitAll(comms, 1, nullptr), "init"); !wrong.empty()) return wrong;
          float x = 3;
          ncclGroupStart();
          ncclAllReduce(&x, &x, 1, ncclFloat, ncclSum, comms[0], nullptr);
          ncclCommSplit(comms[0], 0, 0, &child, nullptr);
          if (std::string wrong = testing::expect(ncclGroupEnd(), ncclInvalidUsage, "group"); !wrong.empty()) return wrong;
          if (std::string wrong = split(comms[0], 0, 0, child); !wrong.empty()) return wrong;
          if (std::string wrong = check_and_destroy(child, 0, {0}); !wrong.empty()) return wrong;
          return testing::must(ncclCommDestroy(comms[0]), "destroy");
        }) == "");
}

TEST_CASE("split: a rank that does not come is named at the deadline, the leader too, and a second try may succeed") {
  for (const int late : {2, 0}) {
    INFO("rank " << late);
    CHECK(testing::as_processes(3, {{"SHOAL_TIMEOUT_MS", "1000"}}, 60, [late](const Ranks& ranks) -> std::string {
            return testing::with_comm(ranks, [&](ncclComm_t comm) -> std::string {
              ncclComm_t child = nullptr;
              if (ranks.rank == late) {
                testing::sleep_ms(4000);
              } else {
                const auto start = testing::Clock::now();
                const ncclResult_t result = ncclCommSplit(comm, 0, 0, &child, nullptr);
                if (std::string wrong = testing::expect(result, ncclSystemError, "split"); !wrong.empty()) return wrong;
                const std::string who = late == 0 ? "rank 0 (" : "only 2 of 3 ranks came within 1000 ms; missing: 2";
                if (std::string wrong = testing::expect_text(who); !wrong.empty()) return wrong;
                const auto left = std::chrono::milliseconds(4100) - (testing::Clock::now() - start);
                if (left.count() > 0) std::this_thread::sleep_for(left);
              }
              if (std::string wrong = split(comm, 0, 0, child); !wrong.empty()) return wrong;
              return check_and_destroy(child, ranks.rank, {0, 1, 2});
            });
          }) == "");
  }
}

TEST_CASE("split: a rank that dies while the others wait for each other is an error on all, the leader too") {
  for (const char* transport : {"shm", "tcp"})
    for (const int dies : {1, 0}) {
      INFO("rank " << dies << " over " << transport);
      CHECK(testing::as_processes(4, testing::transport_variables(transport), 60,
                                  [dies](const Ranks& ranks) -> std::string {
                                    ncclComm_t comm = nullptr, child = nullptr;
                                    if (std::string wrong = testing::init(ranks, comm); !wrong.empty()) return wrong;
                                    if (ranks.rank == dies)
                                      std::thread([] {
                                        testing::sleep_ms(500);
                                        kill(getpid(), SIGKILL);
                                      }).detach();
                                    if (ranks.rank == 3) testing::sleep_ms(1500);  // all others wait for this one
                                    const ncclResult_t result = ncclCommSplit(comm, 0, 0, &child, nullptr);
                                    if (std::string wrong = testing::expect(result, ncclRemoteError, "split"); !wrong.empty())
                                      return wrong;
                                    if (std::string wrong = testing::expect_text("rank " + std::to_string(dies)); !wrong.empty())
                                      return wrong;
                                    return testing::must(ncclCommAbort(comm), "abort");
                                  },
                                  {dies}) == "");
    }
}

TEST_CASE("split: a rank that shrinks instead, or is aborted meanwhile, is an error on all") {
  CHECK(testing::run_ranks("shm", 3, 60, [](const Ranks& ranks) -> std::string {
          ncclComm_t comm = nullptr, child = nullptr;
          if (std::string wrong = testing::init(ranks, comm); !wrong.empty()) return wrong;
          int excluded[] = {1};
          const ncclResult_t result = ranks.rank == 2 ? ncclCommShrink(comm, excluded, 1, &child, nullptr, NCCL_SHRINK_DEFAULT)
                                                      : ncclCommSplit(comm, 0, 0, &child, nullptr);
          if (std::string wrong = testing::expect(result, ncclInvalidUsage, "disagreement"); !wrong.empty()) return wrong;
          if (std::string wrong = testing::expect_text("disagree about which ranks take part"); !wrong.empty()) return wrong;
          if (ranks.rank == 2) {
            testing::sleep_ms(500);
            return testing::must(ncclCommAbort(comm), "abort");
          }
          if (std::string wrong = testing::expect(ncclCommSplit(comm, 0, 0, &child, nullptr), ncclRemoteError, "aborted");
              !wrong.empty())
            return wrong;
          if (std::string wrong = testing::expect_text("rank 2 ("); !wrong.empty()) return wrong;
          return testing::must(ncclCommAbort(comm), "abort");
        }) == "");
}

TEST_CASE("split: a failure of the parent that takes no rank away is none of its children") {
  for (const char* transport : kTransports) {
    INFO(transport);
    CHECK(testing::run_ranks(transport, 4, 60, [](const Ranks& ranks) -> std::string {
            ncclComm_t comm = nullptr, child = nullptr;
            if (std::string wrong = testing::init(ranks, comm); !wrong.empty()) return wrong;
            std::vector<float> x(100, 1);
            const ncclResult_t failed =
                ncclAllReduce(x.data(), x.data(), ranks.rank == 2 ? 50 : 100, ncclFloat, ncclSum, comm, nullptr);
            if (failed == ncclSuccess) return "different counts went unnoticed";
            if (std::string wrong = split(comm, 0, -ranks.rank, child); !wrong.empty()) return wrong;
            // Whoever has its child leaves the parent, in whatever way, while the others may still be on their way.
            if (std::string wrong = testing::must(ncclCommAbort(comm), "abort"); !wrong.empty()) return wrong;
            return check_and_destroy(child, ranks.rank, {3, 2, 1, 0});
          }) == "");
  }
}

TEST_CASE("split: each rank leaves the parent as soon as it has its child, or none") {
  for (const char* transport : kTransports)
    for (int round = 0; round < 10; ++round) {
      INFO(transport);
      CHECK(testing::run_ranks(transport, 5, 60, [](const Ranks& ranks) -> std::string {
              ncclComm_t comm = nullptr, child = nullptr;
              if (std::string wrong = testing::init(ranks, comm); !wrong.empty()) return wrong;
              const bool alone = ranks.rank > 2;
              const int colour = ranks.rank == 4 ? NCCL_SPLIT_NOCOLOR : ranks.rank == 3 ? 1 : 0;
              if (std::string wrong = split(comm, colour, 0, child); !wrong.empty()) return wrong;
              if (std::string wrong = testing::must(ncclCommAbort(comm), "abort"); !wrong.empty()) return wrong;
              if (ranks.rank == 4) return child == nullptr ? "" : "a communicator without a colour";
              return check_and_destroy(child, ranks.rank, alone ? std::vector{3} : std::vector{0, 1, 2});
            }) == "");
    }
}

TEST_CASE("split: with NCCL_COMM_ID children have ports of their own") {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof where;
  REQUIRE(bind(listener, reinterpret_cast<sockaddr*>(&where), length) == 0);
  REQUIRE(getsockname(listener, reinterpret_cast<sockaddr*>(&where), &length) == 0);
  close(listener);
  const std::string id = "127.0.0.1:" + std::to_string(ntohs(where.sin_port));
  CHECK(testing::as_processes(3, {{"NCCL_COMM_ID", id}}, 60, [](const Ranks& ranks) {
          return testing::with_comm(ranks, [&](ncclComm_t comm) -> std::string {
            ncclComm_t child = nullptr;
            if (std::string wrong = split(comm, ranks.rank == 0 ? 0 : 1, -ranks.rank, child); !wrong.empty()) return wrong;
            return check_and_destroy(child, ranks.rank, ranks.rank == 0 ? std::vector{0} : std::vector{2, 1});
          });
        }) == "");
}

TEST_CASE("split: abort from another thread ends the wait for ranks that never come") {
  for (const int waits : {0, 1}) {  // as the leader, as a member
    INFO("rank " << waits);
    CHECK(testing::run_ranks("shm", 2, 60, [waits](const Ranks& ranks) -> std::string {
            ncclComm_t comm = nullptr, child = nullptr;
            if (std::string wrong = testing::init(ranks, comm); !wrong.empty()) return wrong;
            if (ranks.rank != waits) {
              testing::sleep_ms(2000);
              return testing::must(ncclCommAbort(comm), "abort");
            }
            double took = -1;
            std::thread aborter([&] {
              testing::sleep_ms(300);
              const auto start = testing::Clock::now();
              ncclCommAbort(comm);
              took = testing::seconds_since(start);
            });
            const ncclResult_t result = ncclCommSplit(comm, 0, 0, &child, nullptr);
            aborter.join();
            if (took > testing::kSoon) return "abort took " + std::to_string(took) + " s";
            return testing::expect(result, ncclInvalidUsage, "split");
          }) == "");
  }
}

TEST_CASE("split: children leave no descriptors and no threads' sockets behind") {
  CHECK(testing::run_ranks("tcp", 3, 60, [](const Ranks& ranks) {
          return testing::with_comm(ranks, [&](ncclComm_t comm) -> std::string {
            int before = 0;
            for (int round = 0; round < 30; ++round) {
              ncclComm_t child = nullptr;
              if (std::string wrong = split(comm, 0, -ranks.rank, child); !wrong.empty()) return wrong;
              if (std::string wrong = check_and_destroy(child, ranks.rank, {2, 1, 0}); !wrong.empty()) return wrong;
              if (round == 5) before = testing::open_descriptors();
            }
            // The last root service may still be closing.
            for (int i = 0; i < 200 && testing::open_descriptors() > before; ++i) testing::sleep_ms(10);
            const int after = testing::open_descriptors();
            return after <= before ? "" : std::to_string(after) + " descriptors, " + std::to_string(before) + " before";
          });
        }) == "");
}
