// SPDX-License-Identifier: Apache-2.0
// Non-blocking communicators: in progress, then success or an error, once and for good; nothing is lost on the way.
#include <shoal/shoal.h>

#include <catch2/catch.hpp>
#include <numeric>

#include "api/communicators.h"

namespace {

using testing::Ranks;

bool started(ncclResult_t result) { return result == ncclSuccess || result == ncclInProgress; }

std::string begin_init(const Ranks& ranks, ncclComm_t& comm) {
  ncclConfig_t config = testing::non_blocking();
  if (!started(ncclCommInitRankConfig(&comm, ranks.world, ranks.id, ranks.rank, &config)))
    return testing::must(ncclInternalError, "init");
  return comm != nullptr ? "" : "no handle at once";
}

std::string init_and_wait(const Ranks& ranks, ncclComm_t& comm) {
  if (std::string wrong = begin_init(ranks, comm); !wrong.empty()) return wrong;
  return testing::must(testing::settled(comm), "init");
}

std::string exchange(ncclComm_t comm, int rank) {
  std::vector<int> out(8), in(8, -1);
  std::iota(out.begin(), out.end(), 8 * rank);
  ncclGroupStart();
  ncclSend(out.data(), 8, ncclInt, 1 - rank, comm, nullptr);
  ncclRecv(in.data(), 8, ncclInt, 1 - rank, comm, nullptr);
  if (!started(ncclGroupEnd())) return testing::must(ncclInternalError, "group");
  if (std::string wrong = testing::must(testing::settled(comm), "send and receive"); !wrong.empty()) return wrong;
  std::vector<int> expected(8);
  std::iota(expected.begin(), expected.end(), 8 * (1 - rank));
  return in == expected ? "" : "received something else";
}

}  // namespace

TEST_CASE("FC-07: init, poll, group of send and receive, poll, read") {
  for (const char* transport : {"threads", "shm", "tcp"}) {
    INFO(transport);
    CHECK(testing::run_ranks(transport, 2, 60, [](const Ranks& ranks) -> std::string {
            ncclComm_t comm = nullptr;
            if (std::string wrong = init_and_wait(ranks, comm); !wrong.empty()) return wrong;
            for (int i = 0; i < 20; ++i)
              if (std::string wrong = exchange(comm, ranks.rank); !wrong.empty()) return wrong;
            if (!started(ncclCommFinalize(comm))) return testing::must(ncclInternalError, "finalize");
            if (std::string wrong = testing::must(testing::settled(comm), "finalize"); !wrong.empty()) return wrong;
            return testing::must(ncclCommDestroy(comm), "destroy");
          }) == "");
  }
}

TEST_CASE("FC-07: calls, split and destroy before the end of init are refused, and then all is well") {
  for (const char* transport : {"threads", "shm", "tcp"}) {
    INFO(transport);
    CHECK(testing::run_ranks(transport, 2, 60, [](const Ranks& ranks) -> std::string {
            ncclComm_t comm = nullptr, child = nullptr;
            if (ranks.rank == 1) testing::sleep_ms(2000);
            if (std::string wrong = begin_init(ranks, comm); !wrong.empty()) return wrong;
            if (ranks.rank == 0) {
              float x = 1;
              int n = 0;
              ncclResult_t state = ncclSuccess;
              ncclCommGetAsyncError(comm, &state);
              if (std::string wrong = testing::expect(state, ncclInProgress, "the state"); !wrong.empty()) return wrong;
              for (const ncclResult_t result :
                   {ncclAllReduce(&x, &x, 1, ncclFloat, ncclSum, comm, nullptr), ncclCommSplit(comm, 0, 0, &child, nullptr),
                    ncclCommCount(comm, &n), ncclCommFinalize(comm), ncclCommRevoke(comm, 0), ncclCommDestroy(comm)})
                if (std::string wrong = testing::expect(result, ncclInvalidArgument, "too early"); !wrong.empty()) return wrong;
              if (std::string wrong = testing::expect_text("comm is still being made"); !wrong.empty()) return wrong;
            }
            if (std::string wrong = testing::must(testing::settled(comm), "init"); !wrong.empty()) return wrong;
            if (std::string wrong = exchange(comm, ranks.rank); !wrong.empty()) return wrong;
            return testing::must(ncclCommDestroy(comm), "destroy");
          }) == "");
  }
}

TEST_CASE("FC-07: two threads poll a communicator each, and the state moves once") {
  CHECK(testing::as_threads(2, {}, 60, [](const Ranks& ranks) -> std::string {
          ncclComm_t comm = nullptr;
          if (std::string wrong = begin_init(ranks, comm); !wrong.empty()) return wrong;
          int moves = 0;
          ncclResult_t before = ncclInProgress;
          auto last_move = testing::Clock::now();
          while (testing::seconds_since(last_move) < (moves == 0 ? 20 : 0.5)) {
            ncclResult_t state = ncclInternalError;
            ncclCommGetAsyncError(comm, &state);
            if (state == before) continue;
            ++moves;
            before = state;
            last_move = testing::Clock::now();
          }
          if (before != ncclSuccess || moves != 1) return std::to_string(moves) + " moves to " + ncclGetErrorString(before);
          return testing::must(ncclCommDestroy(comm), "destroy");
        }) == "");
}

TEST_CASE("non-blocking: abort ends an init that waits for ranks that never come, within a second") {
  for (const int rank : {0, 1}) {
    CHECK(testing::in_child({}, 60, [rank]() -> std::string {
            Ranks ranks{3, rank, {}};
            ncclGetUniqueId(&ranks.id);
            for (int round = 0; round < 3; ++round) {
              ncclComm_t comm = nullptr;
              if (std::string wrong = begin_init(ranks, comm); !wrong.empty()) return wrong;
              testing::sleep_ms(100 * round);
              ncclResult_t state = ncclSuccess;
              ncclCommGetAsyncError(comm, &state);
              if (round == 0)
                if (std::string wrong = testing::expect(state, ncclInProgress, "the state"); !wrong.empty()) return wrong;
              const auto start = testing::Clock::now();
              if (std::string wrong = testing::must(ncclCommAbort(comm), "abort"); !wrong.empty()) return wrong;
              if (testing::seconds_since(start) > testing::kSoon)
                return "abort took " + std::to_string(testing::seconds_since(start)) + " s";
              ncclGetUniqueId(&ranks.id);
            }
            return "";
          }) == "");
  }
}

TEST_CASE("non-blocking: a rank that aborts its init is named to those that wait") {
  CHECK(testing::as_processes(3, {}, 60, [](const Ranks& ranks) -> std::string {
          ncclComm_t comm = nullptr;
          if (ranks.rank == 2) {
            testing::sleep_ms(3000);  // never comes in time
            return "";
          }
          if (std::string wrong = begin_init(ranks, comm); !wrong.empty()) return wrong;
          if (ranks.rank == 1) {
            testing::sleep_ms(500);
            return testing::must(ncclCommAbort(comm), "abort");
          }
          if (std::string wrong = testing::expect(testing::settled(comm), ncclRemoteError, "init"); !wrong.empty()) return wrong;
          if (std::string wrong = testing::expect_text("rank 1 ("); !wrong.empty()) return wrong;
          // For good, and so says every call.
          if (std::string wrong = testing::expect(testing::settled(comm), ncclRemoteError, "the state again"); !wrong.empty())
            return wrong;
          int n = 0;
          if (std::string wrong = testing::expect(ncclCommCount(comm, &n), ncclRemoteError, "a call"); !wrong.empty())
            return wrong;
          return testing::must(ncclCommDestroy(comm), "destroy");
        }) == "");
}

TEST_CASE("non-blocking: collectives on the null stream run in order in the background") {
  for (const char* transport : {"threads", "shm", "tcp"}) {
    INFO(transport);
    CHECK(testing::run_ranks(transport, 3, 60, [](const Ranks& ranks) -> std::string {
            ncclComm_t comm = nullptr;
            if (std::string wrong = init_and_wait(ranks, comm); !wrong.empty()) return wrong;
            std::vector<double> x(200'000, 1);
            if (ranks.rank == 1) testing::sleep_ms(1500);
            for (int i = 0; i < 5; ++i)
              if (!started(ncclAllReduce(x.data(), x.data(), x.size(), ncclDouble, ncclSum, comm, nullptr)))
                return testing::must(ncclInternalError, "all-reduce");
            ncclResult_t state = ncclSuccess;
            ncclCommGetAsyncError(comm, &state);
            if (ranks.rank == 0)
              if (std::string wrong = testing::expect(state, ncclInProgress, "while rank 1 sleeps"); !wrong.empty()) return wrong;
            if (std::string wrong = testing::must(testing::settled(comm), "all-reduces"); !wrong.empty()) return wrong;
            if (x != std::vector<double>(x.size(), 243)) return "wrong sums";
            return testing::must(ncclCommDestroy(comm), "destroy");
          }) == "");
  }
}

TEST_CASE("non-blocking: a group is of one kind of communicators, in the making or in use") {
  CHECK(testing::in_child({}, 60, []() -> std::string {
          ncclComm_t blocking = nullptr, other = nullptr, third = nullptr;
          if (std::string wrong = testing::must(ncclCommInitAll(&blocking, 1, nullptr), "init"); !wrong.empty()) return wrong;
          Ranks alone{1, 0, {}};
          ncclGetUniqueId(&alone.id);
          if (std::string wrong = init_and_wait(alone, other); !wrong.empty()) return wrong;
          float x = 3, y = 4;
          ncclGroupStart();
          ncclAllReduce(&x, &x, 1, ncclFloat, ncclSum, blocking, nullptr);
          ncclAllReduce(&y, &y, 1, ncclFloat, ncclSum, other, nullptr);
          if (std::string wrong = testing::expect(ncclGroupEnd(), ncclInvalidArgument, "calls"); !wrong.empty()) return wrong;
          ncclConfig_t config = testing::non_blocking();
          ncclUniqueId ids[2];
          ncclGetUniqueId(&ids[0]);
          ncclGetUniqueId(&ids[1]);
          ncclGroupStart();
          ncclCommInitRank(&third, 1, ids[0], 0);
          ncclCommInitRankConfig(&third, 1, ids[1], 0, &config);
          if (std::string wrong = testing::expect(ncclGroupEnd(), ncclInvalidArgument, "inits"); !wrong.empty()) return wrong;
          ncclCommDestroy(blocking);
          return testing::must(ncclCommDestroy(other), "destroy");
        }) == "");
}

TEST_CASE("non-blocking: one thread makes, uses and splits several ranks in groups") {
  CHECK(testing::in_child({}, 60, []() -> std::string {
          ncclUniqueId id;
          ncclGetUniqueId(&id);
          ncclConfig_t config = testing::non_blocking();
          ncclComm_t comms[3] = {}, children[3] = {};
          ncclGroupStart();
          for (int i = 0; i < 3; ++i) ncclCommInitRankConfig(&comms[i], 3, id, i, &config);
          if (!started(ncclGroupEnd())) return testing::must(ncclInternalError, "init");
          for (ncclComm_t comm : comms)
            if (std::string wrong = testing::must(testing::settled(comm), "init"); !wrong.empty()) return wrong;
          float x[3] = {1, 2, 4};
          ncclGroupStart();
          for (int i = 0; i < 3; ++i) ncclAllReduce(&x[i], &x[i], 1, ncclFloat, ncclSum, comms[i], nullptr);
          if (!started(ncclGroupEnd())) return testing::must(ncclInternalError, "all-reduce");
          for (ncclComm_t comm : comms)
            if (std::string wrong = testing::must(testing::settled(comm), "all-reduce"); !wrong.empty()) return wrong;
          if (x[0] != 7 || x[1] != 7 || x[2] != 7) return "wrong sums";
          ncclGroupStart();
          for (int i = 0; i < 3; ++i) ncclCommSplit(comms[i], i == 1 ? NCCL_SPLIT_NOCOLOR : 0, 0, &children[i], nullptr);
          if (!started(ncclGroupEnd())) return testing::must(ncclInternalError, "split");
          if (children[1] != nullptr) return "a communicator without a colour";
          for (const int i : {0, 2})
            if (std::string wrong = testing::must(testing::settled(children[i]), "split"); !wrong.empty()) return wrong;
          for (ncclComm_t comm : comms)
            if (std::string wrong = testing::must(testing::settled(comm), "the parent"); !wrong.empty()) return wrong;
          for (ncclComm_t comm : {comms[0], comms[1], comms[2], children[0], children[2]})
            if (std::string wrong = testing::must(ncclCommDestroy(comm), "destroy"); !wrong.empty()) return wrong;
          return "";
        }) == "");
}

TEST_CASE("non-blocking: children inherit it, unless their own config says otherwise; shrink too") {
  CHECK(testing::run_ranks("shm", 3, 60, [](const Ranks& ranks) -> std::string {
          ncclComm_t comm = nullptr, child = nullptr, blocking = nullptr, pair = nullptr;
          if (std::string wrong = init_and_wait(ranks, comm); !wrong.empty()) return wrong;
          if (std::string wrong = testing::expect(ncclCommSplit(comm, 0, 0, &child, nullptr), ncclInProgress, "split");
              !wrong.empty())
            return wrong;
          if (std::string wrong = testing::must(testing::settled(child), "split"); !wrong.empty()) return wrong;
          if (std::string wrong = testing::expect_members(child, ranks.rank, {0, 1, 2}); !wrong.empty()) return wrong;
          ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
          config.splitShare = 1;  // accepted; there is nothing to share
          if (std::string wrong = testing::must(ncclCommSplit(comm, 0, 0, &blocking, &config), "split"); !wrong.empty())
            return wrong;
          if (std::string wrong = testing::expect_members(blocking, ranks.rank, {0, 1, 2}); !wrong.empty()) return wrong;
          if (ranks.rank != 1) {
            int excluded = 1;
            if (!started(ncclCommShrink(comm, &excluded, 1, &pair, nullptr, 0)))
              return testing::must(ncclInternalError, "shrink");
            if (std::string wrong = testing::must(testing::settled(pair), "shrink"); !wrong.empty()) return wrong;
            if (std::string wrong = testing::expect_members(pair, ranks.rank, {0, 2}); !wrong.empty()) return wrong;
            ncclCommDestroy(pair);
          }
          for (ncclComm_t each : {comm, child, blocking})
            if (std::string wrong = testing::must(ncclCommDestroy(each), "destroy"); !wrong.empty()) return wrong;
          return "";
        }) == "");
}

TEST_CASE("non-blocking: abort of a child in the making waits neither for its parent nor for other ranks") {
  CHECK(testing::run_ranks("shm", 2, 60, [](const Ranks& ranks) -> std::string {
          ncclComm_t comm = nullptr, child = nullptr;
          if (std::string wrong = init_and_wait(ranks, comm); !wrong.empty()) return wrong;
          if (ranks.rank == 1) {
            testing::sleep_ms(2000);
            return testing::must(ncclCommAbort(comm), "abort");
          }
          float x = 1;
          ncclAllReduce(&x, &x, 1, ncclFloat, ncclSum, comm, nullptr);  // which rank 1 never joins
          if (std::string wrong = testing::expect(ncclCommSplit(comm, 0, 0, &child, nullptr), ncclInProgress, "split");
              !wrong.empty())
            return wrong;
          testing::sleep_ms(200);
          for (ncclComm_t each : {child, comm}) {
            const auto start = testing::Clock::now();
            if (std::string wrong = testing::must(ncclCommAbort(each), "abort"); !wrong.empty()) return wrong;
            if (testing::seconds_since(start) > testing::kSoon)
              return "abort took " + std::to_string(testing::seconds_since(start)) + " s";
          }
          return "";
        }) == "");
}

TEST_CASE("non-blocking: the environment decides before the config") {
  CHECK(testing::in_child({{"NCCL_COMM_BLOCKING", "0"}}, 60, []() -> std::string {
          Ranks alone{1, 0, {}};
          ncclGetUniqueId(&alone.id);
          ncclComm_t comm = nullptr;
          if (std::string wrong = testing::expect(ncclCommInitRank(&comm, 1, alone.id, 0), ncclInProgress, "init");
              !wrong.empty())
            return wrong;
          if (std::string wrong = testing::must(testing::settled(comm), "init"); !wrong.empty()) return wrong;
          return testing::must(ncclCommDestroy(comm), "destroy");
        }) == "");
  CHECK(testing::in_child({{"NCCL_COMM_BLOCKING", "1"}}, 60, []() -> std::string {
          ncclUniqueId id;
          ncclGetUniqueId(&id);
          ncclConfig_t config = testing::non_blocking();
          ncclComm_t comm = nullptr;
          if (std::string wrong = testing::must(ncclCommInitRankConfig(&comm, 1, id, 0, &config), "init"); !wrong.empty())
            return wrong;
          return testing::must(ncclCommDestroy(comm), "destroy");
        }) == "");
}
