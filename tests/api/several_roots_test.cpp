// SPDX-License-Identifier: Apache-2.0
// A communicator of several unique ids, whose processes are its roots: it works, and outlives none of them silently.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <vector>

#include "support/ranks.h"
#include "support/shared.h"

using testing::must;
using testing::Ranks;

namespace {

constexpr int kWorld = 6;

// A communicator of two ids, made by ranks 0 and 3; a second id travels over the first communicator.
std::string join(const Ranks& ranks, ncclComm_t& comm) {
  ncclComm_t first = nullptr;
  if (std::string wrong = testing::init(ranks, first); !wrong.empty()) return wrong;
  ncclUniqueId ids[2];
  std::string wrong;
  for (int i = 0; i < 2 && wrong.empty(); ++i) {
    const int maker = 3 * i;
    if (ranks.rank == maker) wrong = must(ncclGetUniqueId(&ids[i]), "ncclGetUniqueId");
    if (wrong.empty()) wrong = must(ncclBroadcast(&ids[i], &ids[i], sizeof ids[i], ncclUint8, maker, first, nullptr), "the id");
  }
  if (wrong.empty())
    wrong = must(ncclCommInitRankScalable(&comm, kWorld, ranks.rank, 2, ids, nullptr), "ncclCommInitRankScalable");
  ncclCommDestroy(first);
  return wrong;
}

std::string sum_of_ranks(ncclComm_t comm, int rank) {
  std::vector<int> data(1000, rank + 1);
  std::string wrong = must(ncclAllReduce(data.data(), data.data(), data.size(), ncclInt32, ncclSum, comm, nullptr), "all-reduce");
  for (const int x : data)
    if (wrong.empty() && x != kWorld * (kWorld + 1) / 2) wrong = "a sum of " + std::to_string(x);
  return wrong;
}

// Rank `victim` kills its process in the middle of the communicator's life; the others' next call says so, and they shrink.
std::string survive(const Ranks& ranks, int victim, std::atomic<int>& done) {
  ncclComm_t comm = nullptr;
  if (std::string wrong = join(ranks, comm); !wrong.empty()) return wrong;
  if (std::string wrong = sum_of_ranks(comm, ranks.rank); !wrong.empty()) return wrong;
  ++done;
  if (ranks.rank == victim) {
    for (int ms = 0; ms < 30'000 && done.load() < kWorld; ++ms) usleep(1000);
    raise(SIGKILL);
  }
  std::vector<float> data(100, 1);
  ncclResult_t result = ncclSuccess;
  for (int i = 0; i < 1'000'000 && result == ncclSuccess; ++i)
    result = ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat32, ncclMax, comm, nullptr);
  const std::string text = ncclGetLastError(comm);
  const std::string name = "rank " + std::to_string(victim);
  if (result != ncclRemoteError || text.find(name) == std::string::npos) return std::to_string(result) + ": " + text;
  ncclComm_t rest = nullptr;
  std::string wrong = must(ncclCommShrink(comm, &victim, 1, &rest, nullptr, NCCL_SHRINK_ABORT), "ncclCommShrink");
  int world = 0;
  if (wrong.empty()) wrong = must(ncclCommCount(rest, &world), "ncclCommCount");
  if (wrong.empty() && world != kWorld - 1) wrong = "a world of " + std::to_string(world);
  std::vector<int> ones(10, 1);
  if (wrong.empty())
    wrong = must(ncclAllReduce(ones.data(), ones.data(), 10, ncclInt32, ncclSum, rest, nullptr), "after the shrink");
  if (wrong.empty() && ones[9] != kWorld - 1) wrong = "a sum of " + std::to_string(ones[9]);
  if (rest != nullptr) ncclCommDestroy(rest);
  ncclCommAbort(comm);
  return wrong;
}

}  // namespace

TEST_CASE("Two roots: sums are right, and any rank's death is told by name: a root's, the first root's, any other's") {
  const std::string transport = GENERATE("shm", "tcp");
  const int victim = GENERATE(0, 3, 5);
  CAPTURE(transport, victim);
  const testing::Shared<std::atomic<int>> done;  // how many ranks have their sum
  CHECK(testing::as_processes(kWorld, testing::transport_variables(transport), 60,
                              [&](const Ranks& ranks) { return survive(ranks, victim, *done); }, {victim}) == "");
}
