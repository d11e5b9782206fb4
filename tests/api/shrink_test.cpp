// SPDX-License-Identifier: Apache-2.0
// ncclCommShrink: the survivors go on, whoever died, and without each other's parents.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "api/communicators.h"

namespace {

using testing::Ranks;

std::string shrink(ncclComm_t comm, std::vector<int> excluded, ncclComm_t& child, int flags = NCCL_SHRINK_DEFAULT) {
  return testing::must(ncclCommShrink(comm, excluded.data(), static_cast<int>(excluded.size()), &child, nullptr, flags),
                       "shrink");
}

// Some ranks of four or five kill themselves while all compute; the others shrink and compute exactly.
std::string survive(const Ranks& ranks, const std::vector<int>& dying, const std::vector<int>& living) {
  ncclComm_t comm = nullptr, child = nullptr;
  if (std::string wrong = testing::init(ranks, comm); !wrong.empty()) return wrong;
  if (std::ranges::count(dying, ranks.rank) > 0) {
    float x = 1;
    for (int i = 0; i < 10; ++i) ncclAllReduce(&x, &x, 1, ncclFloat, ncclMax, comm, nullptr);
    kill(getpid(), SIGKILL);
  }
  if (std::string wrong = testing::expect(testing::until_failure(comm), ncclRemoteError, "a peer's death"); !wrong.empty())
    return wrong;
  if (std::string wrong = shrink(comm, dying, child); !wrong.empty()) return wrong;
  const auto place = std::ranges::find(living, ranks.rank) - living.begin();
  if (std::string wrong = testing::expect_place(child, static_cast<int>(place), static_cast<int>(living.size())); !wrong.empty())
    return wrong;
  if (std::string wrong = testing::expect_members(child, ranks.rank, living); !wrong.empty()) return wrong;
  if (std::string wrong = testing::must(ncclCommAbort(comm), "abort the parent"); !wrong.empty()) return wrong;
  if (std::string wrong = testing::expect_members(child, ranks.rank, living); !wrong.empty())
    return "without its parent: " + wrong;
  return testing::must(ncclCommDestroy(child), "destroy");
}

}  // namespace

TEST_CASE("FC-32: survivors of a dead peer build a smaller communicator, also without rank 0, and when two died") {
  struct Case {
    int world;
    std::vector<int> dying, living;
  };
  for (const char* transport : {"shm", "tcp"})
    for (const Case& each : {Case{4, {2}, {0, 1, 3}}, Case{4, {0}, {1, 2, 3}}, Case{5, {3, 0}, {1, 2, 4}}, Case{2, {0}, {1}}}) {
      INFO(transport << ", the first of the dead is rank " << each.dying.front() << " of " << each.world);
      CHECK(testing::as_processes(
                each.world, testing::transport_variables(transport), 60,
                [&](const Ranks& ranks) { return survive(ranks, each.dying, each.living); }, each.dying) == "");
    }
}

TEST_CASE("shrink: a healthy communicator, twice, with the list in any order") {
  for (const char* transport : {"threads", "shm", "tcp"}) {
    INFO(transport);
    CHECK(testing::run_ranks(transport, 5, 60, [](const Ranks& ranks) {
            return testing::with_comm(ranks, [&](ncclComm_t comm) -> std::string {
              ncclComm_t three = nullptr, two = nullptr;
              if (ranks.rank == 4 || ranks.rank == 0) {
                // It is not asked; the parent stays usable for all, below.
              } else {
                const std::vector<int> excluded = ranks.rank == 2 ? std::vector{4, 0} : std::vector{0, 4};
                if (std::string wrong = shrink(comm, excluded, three); !wrong.empty()) return wrong;
                if (std::string wrong = testing::expect_members(three, ranks.rank, {1, 2, 3}); !wrong.empty()) return wrong;
                if (ranks.rank != 2) {
                  if (std::string wrong = shrink(three, {1}, two); !wrong.empty()) return wrong;
                  if (std::string wrong = testing::expect_members(two, ranks.rank, {1, 3}); !wrong.empty()) return wrong;
                  if (std::string wrong = testing::must(ncclCommDestroy(two), "destroy"); !wrong.empty()) return wrong;
                }
                if (std::string wrong = testing::must(ncclCommDestroy(three), "destroy"); !wrong.empty()) return wrong;
              }
              return testing::expect_members(comm, ranks.rank, {0, 1, 2, 3, 4});
            });
          }) == "");
  }
}

TEST_CASE("shrink: a wrong list is refused, naming entry and value") {
  CHECK(testing::in_child({}, 60, []() -> std::string {
          ncclComm_t comms[3], child = nullptr;
          if (std::string wrong = testing::must(ncclCommInitAll(comms, 3, nullptr), "init"); !wrong.empty()) return wrong;
          struct Case {
            std::vector<int> list;
            const char* text;
          };
          for (Case each : {Case{{3}, "excludeRanksList[0] is 3, must be 0 .. 2"}, Case{{1, -1}, "excludeRanksList[1] is -1"},
                            Case{{1, 1}, "excludeRanksList[1] is 1, which stands in the list before"},
                            Case{{0}, "excludeRanksList[0] is 0, this rank itself"},
                            Case{{0, 1, 2}, "excludeRanksCount is 3, must be 1 .. 2"}}) {
            const ncclResult_t result = ncclCommShrink(comms[0], each.list.data(), static_cast<int>(each.list.size()), &child,
                                                       nullptr, NCCL_SHRINK_DEFAULT);
            if (std::string wrong = testing::expect(result, ncclInvalidArgument, each.text); !wrong.empty()) return wrong;
            if (std::string wrong = testing::expect_text(each.text); !wrong.empty()) return wrong;
          }
          int one = 1;
          if (ncclCommShrink(comms[0], &one, 0, &child, nullptr, 0) != ncclInvalidArgument) return "an empty list was accepted";
          if (ncclCommShrink(comms[0], nullptr, 1, &child, nullptr, 0) != ncclInvalidArgument) return "NULL was accepted";
          for (ncclComm_t comm : comms) ncclCommAbort(comm);
          return "";
        }) == "");
}

TEST_CASE("shrink: wrong flags, and no place for the handle, are errors on all") {
  CHECK(testing::run_ranks("shm", 3, 60, [](const Ranks& ranks) {
          return testing::with_comm(ranks, [&](ncclComm_t comm) -> std::string {
            if (ranks.rank == 1) return "";
            int excluded = 1;
            ncclComm_t child = nullptr;
            ncclResult_t result = ncclCommShrink(comm, &excluded, 1, &child, nullptr, ranks.rank == 2 ? 7 : 0);
            if (std::string wrong = testing::expect(result, ranks.rank == 2 ? ncclInvalidArgument : ncclRemoteError, "flags 7");
                !wrong.empty())
              return wrong;
            if (std::string wrong = testing::expect_text("shrinkFlags is 7"); !wrong.empty()) return wrong;
            result = ncclCommShrink(comm, &excluded, 1, ranks.rank == 0 ? nullptr : &child, nullptr, 0);
            if (std::string wrong = testing::expect(result, ranks.rank == 0 ? ncclInvalidArgument : ncclRemoteError, "NULL");
                !wrong.empty())
              return wrong;
            return testing::expect_text("newcomm is NULL");
          });
        }) == "");
}

TEST_CASE("shrink: what is pending finishes first, or is ended first if the caller says so") {
  for (const char* transport : {"threads", "shm", "tcp"})
    for (const int flags : {NCCL_SHRINK_DEFAULT, NCCL_SHRINK_ABORT}) {
      INFO(transport << ", flags " << flags);
      CHECK(testing::run_ranks(transport, 3, 60, [flags](const Ranks& ranks) -> std::string {
              ncclComm_t comm = nullptr, child = nullptr;
              if (std::string wrong = testing::init(ranks, comm); !wrong.empty()) return wrong;
              if (std::string wrong = testing::expect_members(comm, ranks.rank, {0, 1, 2}); !wrong.empty()) return wrong;
              std::vector<float> data(1000, 1);
              ncclResult_t pending = ncclInProgress;
              std::thread caller;
              const bool joins = flags == NCCL_SHRINK_DEFAULT || ranks.rank != 2;
              if (ranks.rank == 2) testing::sleep_ms(1000);
              if (joins)
                caller = std::thread(
                    [&] { pending = ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat, ncclSum, comm, nullptr); });
              testing::sleep_ms(300);
              const std::string shrunk = ranks.rank != 2 ? shrink(comm, {2}, child, flags) : "";
              if (caller.joinable()) caller.join();
              if (!shrunk.empty()) return shrunk;
              if (ranks.rank != 2) {
                if (std::string wrong = testing::expect_members(child, ranks.rank, {0, 1}); !wrong.empty()) return wrong;
                ncclCommDestroy(child);
              }
              if (flags == NCCL_SHRINK_DEFAULT) {
                if (pending != ncclSuccess || data[999] != 3) return "the pending call did not finish";
              } else if (joins) {
                if (std::string wrong = testing::expect(pending, ncclInvalidUsage, "the pending call"); !wrong.empty())
                  return wrong;
                const ncclResult_t later = ncclAllReduce(data.data(), data.data(), 1, ncclFloat, ncclSum, comm, nullptr);
                if (std::string wrong = testing::expect(later, ncclInvalidUsage, "a later call"); !wrong.empty()) return wrong;
              }
              return testing::must(ncclCommAbort(comm), "abort");
            }) == "");
    }
}

TEST_CASE("shrink: a dead rank that is not excluded is an error that names it") {
  CHECK(testing::as_processes(3, {}, 60,
                              [](const Ranks& ranks) -> std::string {
                                ncclComm_t comm = nullptr, child = nullptr;
                                if (std::string wrong = testing::init(ranks, comm); !wrong.empty()) return wrong;
                                if (ranks.rank == 2) kill(getpid(), SIGKILL);
                                testing::until_failure(comm);
                                int excluded = 1 - ranks.rank;
                                const ncclResult_t result = ncclCommShrink(comm, &excluded, 1, &child, nullptr, 0);
                                if (std::string wrong = testing::expect(result, ncclRemoteError, "shrink"); !wrong.empty())
                                  return wrong;
                                if (std::string wrong = testing::expect_text("rank 2 ("); !wrong.empty()) return wrong;
                                return testing::must(ncclCommAbort(comm), "abort");
                              },
                              {2}) == "");
}

TEST_CASE("shrink: after rank 0's death nobody watches; one more that dies before it comes is still an error that names it") {
  for (const char* transport : {"shm", "tcp"}) {
    INFO(transport);
    CHECK(testing::as_processes(4, testing::transport_variables(transport), 20,
                                [](const Ranks& ranks) -> std::string {
                                  ncclComm_t comm = nullptr, child = nullptr;
                                  if (std::string wrong = testing::init(ranks, comm); !wrong.empty()) return wrong;
                                  if (ranks.rank == 0) testing::die_after_first_call(comm);
                                  testing::until_failure(comm);
                                  if (ranks.rank == 2) kill(getpid(), SIGKILL);
                                  int dead = 0;
                                  const ncclResult_t result = ncclCommShrink(comm, &dead, 1, &child, nullptr, NCCL_SHRINK_ABORT);
                                  if (std::string wrong = testing::expect(result, ncclRemoteError, "shrink"); !wrong.empty())
                                    return wrong;
                                  if (std::string wrong = testing::expect_text("rank 2 ("); !wrong.empty()) return wrong;
                                  return testing::must(ncclCommAbort(comm), "abort");
                                },
                                {0, 2}) == "");
  }
}
