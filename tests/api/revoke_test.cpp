// SPDX-License-Identifier: Apache-2.0
// ncclCommRevoke: work ends everywhere, nothing new begins, and what may follow works.
#include <shoal/shoal.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "api/communicators.h"
#include "support/shared.h"

namespace {

using testing::Ranks;

}  // namespace

TEST_CASE("revoke: blocked calls of all ranks end, naming who revoked") {
  for (const char* transport : {"threads", "shm", "tcp"}) {
    INFO(transport);
    CHECK(testing::run_ranks(transport, 3, 60, [transport](const Ranks& ranks) -> std::string {
            ncclComm_t comm = nullptr;
            if (std::string wrong = testing::init(ranks, comm); !wrong.empty()) return wrong;
            float x = 1;
            std::thread revoker;
            if (ranks.rank == 1)
              revoker = std::thread([comm] {
                testing::sleep_ms(300);
                ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT);
              });
            const auto start = testing::Clock::now();
            ncclResult_t result = ncclInvalidUsage;
            if (ranks.rank == 2)
              testing::sleep_ms(1000);  // never joins the call
            else
              result = ncclAllReduce(&x, &x, 1, ncclFloat, ncclSum, comm, nullptr);
            const double took = testing::seconds_since(start);
            const std::string text = ncclGetLastError(nullptr);
            if (revoker.joinable()) revoker.join();
            if (std::string wrong = testing::expect(result, ncclInvalidUsage, "the blocked call"); !wrong.empty()) return wrong;
            if (took > 3) return "ended after " + std::to_string(took) + " s";
            if (ranks.rank == 0 && std::string(transport) != "threads" &&
                (text.find("rank 1 (") == std::string::npos || text.find("revoked the communicator") == std::string::npos))
              return "got: " + text;
            if (std::string wrong = testing::expect(ncclAllReduce(&x, &x, 1, ncclFloat, ncclSum, comm, nullptr), ncclInvalidUsage,
                                                    "a later call");
                !wrong.empty())
              return wrong;
            return testing::must(ranks.rank == 1 ? ncclCommDestroy(comm) : ncclCommAbort(comm), "the end");
          }) == "");
  }
}

TEST_CASE("revoke: afterwards calls and finalize are refused; questions, split, shrink and destroy work") {
  for (const char* transport : {"threads", "shm", "tcp"}) {
    INFO(transport);
    // Whoever is through with its call may not revoke before all are: that would end theirs.
    const testing::Shared<std::atomic<int>> through;
    CHECK(testing::run_ranks(transport, 4, 60, [&](const Ranks& ranks) -> std::string {
            ncclComm_t comm = nullptr, child = nullptr;
            if (std::string wrong = testing::init(ranks, comm); !wrong.empty()) return wrong;
            if (std::string wrong = testing::expect_members(comm, ranks.rank, {0, 1, 2, 3}); !wrong.empty()) return wrong;
            for (++*through; *through < 4;) std::this_thread::sleep_for(std::chrono::milliseconds(1));
            if (std::string wrong = testing::must(ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT), "revoke"); !wrong.empty())
              return wrong;
            if (std::string wrong = testing::must(ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT), "revoke again"); !wrong.empty())
              return wrong;
            if (std::string wrong = testing::must(testing::settled(comm), "the state"); !wrong.empty()) return wrong;
            float x = 1;
            for (const ncclResult_t result :
                 {ncclAllReduce(&x, &x, 1, ncclFloat, ncclSum, comm, nullptr), ncclSend(&x, 1, ncclFloat, 0, comm, nullptr),
                  shoalBarrier(comm, nullptr), ncclCommFinalize(comm)})
              if (std::string wrong = testing::expect(result, ncclInvalidUsage, "after revoke"); !wrong.empty()) return wrong;
            if (std::string wrong = testing::expect_place(comm, ranks.rank, 4); !wrong.empty()) return wrong;
            if (std::string wrong = testing::must(ncclCommSplit(comm, ranks.rank / 2, 0, &child, nullptr), "split");
                !wrong.empty())
              return wrong;
            if (std::string wrong =
                    testing::expect_members(child, ranks.rank, ranks.rank < 2 ? std::vector{0, 1} : std::vector{2, 3});
                !wrong.empty())
              return wrong;
            if (std::string wrong = testing::must(ncclCommDestroy(child), "destroy the child"); !wrong.empty()) return wrong;
            if (ranks.rank != 0) {
              int excluded = 0;
              if (std::string wrong = testing::must(ncclCommShrink(comm, &excluded, 1, &child, nullptr, 0), "shrink");
                  !wrong.empty())
                return wrong;
              if (std::string wrong = testing::expect_members(child, ranks.rank, {1, 2, 3}); !wrong.empty()) return wrong;
              if (std::string wrong = testing::must(ncclCommDestroy(child), "destroy the child"); !wrong.empty()) return wrong;
            }
            return testing::must(ncclCommDestroy(comm), "destroy");
          }) == "");
  }
}

TEST_CASE("revoke: wrong flags, NULL and a finalized communicator are refused") {
  CHECK(testing::in_child({}, 60, []() -> std::string {
          ncclComm_t comm = nullptr;
          if (std::string wrong = testing::must(ncclCommInitAll(&comm, 1, nullptr), "init"); !wrong.empty()) return wrong;
          if (std::string wrong = testing::expect(ncclCommRevoke(comm, 5), ncclInvalidArgument, "flags"); !wrong.empty())
            return wrong;
          if (std::string wrong = testing::expect_text("revokeFlags is 5"); !wrong.empty()) return wrong;
          if (ncclCommRevoke(nullptr, 0) != ncclInvalidArgument) return "NULL was accepted";
          if (std::string wrong = testing::must(ncclCommFinalize(comm), "finalize"); !wrong.empty()) return wrong;
          if (std::string wrong = testing::expect(ncclCommRevoke(comm, 0), ncclInvalidArgument, "finalized"); !wrong.empty())
            return wrong;
          return testing::must(ncclCommDestroy(comm), "destroy");
        }) == "");
}
