// SPDX-License-Identifier: Apache-2.0
// Ranks that do not make the same calls: all of them get an error that lists the odd one and what each side called, and nobody's
// input is passed off as a result. The deadline is far away: it is not what ends these calls.
#include <nccl.h>
#include <shoal/shoal.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "support/patience.h"
#include "support/ranks.h"

namespace {

using testing::Ranks;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr int kOdd = 2;

struct Ended {
  ncclResult_t result;
  std::string text;
};

// What became of the communicator: a rank whose call ended before the others' trouble began hears of it later.
Ended outcome(ncclComm_t comm, ncclResult_t result) {
  const auto until = Clock::now() + std::chrono::seconds(20);
  while (result == ncclSuccess && Clock::now() < until) {
    if (ncclCommGetAsyncError(comm, &result) != ncclSuccess) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return {result, ncclGetLastError(comm)};
}

std::string expect(const Ended& ended, ncclResult_t code, const std::vector<std::string>& parts) {
  if (ended.result != code) return std::string("ended with ") + ncclGetErrorString(ended.result) + ": " + ended.text;
  for (const std::string& part : parts)
    if (ended.text.find(part) == std::string::npos) return "\"" + part + "\" is not in: " + ended.text;
  return "";
}

// A communicator that is expected to fail.
std::string with_doomed(const Ranks& ranks, const std::function<std::string(ncclComm_t)>& body) {
  ncclComm_t comm = nullptr;
  if (std::string wrong = testing::init(ranks, comm); !wrong.empty()) return wrong;
  std::string wrong = body(comm);
  // The others still have to see why it failed, not that this rank aborted.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  if (std::string abort = testing::must(ncclCommAbort(comm), "abort"); wrong.empty()) wrong = abort;
  return wrong;
}

struct Memory {
  std::vector<double> in = std::vector<double>(1 << 17, 1), out = std::vector<double>(1 << 17, -7);
};
using Call = std::function<ncclResult_t(ncclComm_t, Memory&)>;

Call all_reduce(std::size_t count, ncclDataType_t type = ncclFloat, ncclRedOp_t op = ncclSum) {
  return [=](ncclComm_t comm, Memory& m) { return ncclAllReduce(m.in.data(), m.out.data(), count, type, op, comm, nullptr); };
}
Call broadcast(std::size_t count, int root) {
  return
      [=](ncclComm_t comm, Memory& m) { return ncclBroadcast(m.in.data(), m.out.data(), count, ncclFloat, root, comm, nullptr); };
}
Call reduce(std::size_t count, int root) {
  return [=](ncclComm_t comm, Memory& m) {
    return ncclReduce(m.in.data(), m.out.data(), count, ncclFloat, ncclSum, root, comm, nullptr);
  };
}
Call all_gather(std::size_t count) {
  return [=](ncclComm_t comm, Memory& m) { return ncclAllGather(m.in.data(), m.out.data(), count, ncclFloat, comm, nullptr); };
}
Call in_mode(std::size_t count, shoalNumerics mode) {
  return [=](ncclComm_t comm, Memory& m) {
    return shoalAllReduce(m.in.data(), m.out.data(), count, ncclFloat, ncclSum, mode, comm, nullptr);
  };
}
Call then(Call first, Call second) {
  return [=](ncclComm_t comm, Memory& m) {
    const ncclResult_t result = first(comm, m);
    return result == ncclSuccess ? second(comm, m) : result;
  };
}

}  // namespace

// When ranks are asked, some may not have come to the call yet: then the text says so, and of two camps of one rank each the
// lower one is taken to be right.
TEST_CASE("FC-06: one rank makes another call: all ranks are told which, and what each side called") {
  struct Case {
    const char* what;
    Call usual, odd;
    std::string usual_text, odd_text;
  };
  const Case cases[] = {
      {"collective", all_reduce(512), broadcast(512, 0), "all_reduce #1 of 512 float32, sum",
       "broadcast #1 of 512 float32, root 0"},
      {"count", all_reduce(512), all_reduce(128), "all_reduce #1 of 512 float32, sum", "all_reduce #1 of 128 float32, sum"},
      {"count, far apart", all_reduce(200'000), all_reduce(2), "all_reduce #1 of 200000 float32, sum",
       "all_reduce #1 of 2 float32, sum"},
      {"type", all_reduce(512), all_reduce(512, ncclInt64), "all_reduce #1 of 512 float32, sum",
       "all_reduce #1 of 512 int64, sum"},
      {"reduction", all_reduce(512), all_reduce(512, ncclFloat, ncclMax), "all_reduce #1 of 512 float32, sum",
       "all_reduce #1 of 512 float32, max"},
      {"root of a broadcast", broadcast(1000, 0), broadcast(1000, 1), "broadcast #1 of 1000 float32, root 0",
       "broadcast #1 of 1000 float32, root 1"},
      {"root of a reduce", reduce(9, 3), reduce(9, 2), "reduce #1 of 9 float32, sum, root 3",
       "reduce #1 of 9 float32, sum, root 2"},
      {"numerics", in_mode(77, shoalFast), in_mode(77, shoalExact), "all_reduce #1 of 77 float32, sum",
       "all_reduce #1 of 77 float32, sum, exact"},
      {"an extra call", then(all_reduce(4), all_gather(16)), then(then(all_reduce(4), all_reduce(4)), all_gather(16)),
       "all_gather #2 of 16 float32", "all_reduce #2 of 4 float32, sum"},
      {"a missing call", then(all_reduce(4), all_gather(16)), all_gather(16), "all_reduce #1 of 4 float32, sum",
       "all_gather #1 of 16 float32"},
  };
  for (const Case& one : cases)
    for (const char* transport : {"threads", "shm", "tcp"}) {
      INFO(one.what << " over " << transport);
      CHECK(testing::run_ranks(transport, 4, 60, [&](const Ranks& ranks) -> std::string {
              return with_doomed(ranks, [&](ncclComm_t comm) -> std::string {
                Memory memory;
                const ncclResult_t result = (ranks.rank == kOdd ? one.odd : one.usual)(comm, memory);
                std::string wrong =
                    expect(outcome(comm, result), ncclInvalidUsage, {"rank 2", "made " + one.odd_text, "made " + one.usual_text});
                if (!wrong.empty()) return wrong;
                const ncclResult_t later = all_reduce(1)(comm, memory);
                return later == ncclInvalidUsage ? "" : "a later call was not refused";
              });
            }) == "");
    }
}

TEST_CASE("FC-06: lengths that all ranks must know alike, and lengths that only two ranks know") {
  for (const char* transport : {"threads", "shm", "tcp"}) {
    INFO(transport);
    CHECK(testing::run_ranks(transport, 4, 60, [](const Ranks& ranks) -> std::string {
            return with_doomed(ranks, [&](ncclComm_t comm) -> std::string {
              const std::vector<std::size_t> counts =
                  ranks.rank == kOdd ? std::vector<std::size_t>{1, 2, 3, 5} : std::vector<std::size_t>{1, 2, 3, 4};
              Memory memory;
              const ncclResult_t result = shoalAllGatherV(memory.in.data(), counts[static_cast<std::size_t>(ranks.rank)],
                                                          memory.out.data(), counts.data(), nullptr, ncclFloat, comm, nullptr);
              return expect(outcome(comm, result), ncclInvalidUsage, {"rank 2", "made all_gather_v #1", "lengths "});
            });
          }) == "");
    CHECK(testing::run_ranks(transport, 3, 60, [](const Ranks& ranks) -> std::string {
            return with_doomed(ranks, [&](ncclComm_t comm) -> std::string {
              std::vector<std::size_t> sends(3, 2), receives(3, 2);
              if (ranks.rank == kOdd) sends[0] = 5;
              Memory memory;
              const ncclResult_t result = shoalAllToAllV(memory.in.data(), sends.data(), nullptr, memory.out.data(),
                                                         receives.data(), nullptr, ncclFloat, comm, nullptr);
              return expect(outcome(comm, result), ncclInvalidUsage, {"rank 2 (", "rank 0 ("});
            });
          }) == "");
  }
}

TEST_CASE("FC-05: receiver and sender disagree on the size") {
  struct Sizes {
    std::size_t sent, received;
  };
  for (const Sizes sizes : {Sizes{1, 2}, Sizes{1, 3}, Sizes{3, 2}, Sizes{0, 1}, Sizes{1, 0}, Sizes{1 << 17, (1 << 17) + 1}})
    for (const char* transport : {"threads", "shm", "tcp"}) {
      INFO(sizes.sent << " sent, " << sizes.received << " received, over " << transport);
      CHECK(testing::run_ranks(transport, 2, 60, [&](const Ranks& ranks) -> std::string {
              return with_doomed(ranks, [&](ncclComm_t comm) -> std::string {
                std::vector<float> data(sizes.received + sizes.sent + 4, ranks.rank == 0 ? 1.0F : -7.0F);
                const ncclResult_t result = ranks.rank == 0 ? ncclSend(data.data(), sizes.sent, ncclFloat, 1, comm, nullptr)
                                                            : ncclRecv(data.data(), sizes.received, ncclFloat, 0, comm, nullptr);
                const Ended ended = outcome(comm, result);
                for (std::size_t i = std::min(sizes.sent, sizes.received); ranks.rank == 1 && i < data.size(); ++i)
                  if (data[i] != -7.0F) return "element " + std::to_string(i) + " was written";
                if (ended.result == ncclSuccess) return "success";
                return expect(ended, ncclInvalidUsage,
                              {"rank 0", std::to_string(4 * sizes.sent), std::to_string(4 * sizes.received)});
              });
            }) == "");
    }
}

namespace {

// Ten all-reduces, of which some ranks make only nine and then `instead`.
std::string nine_of_ten(const Ranks& ranks, const std::vector<int>& absent, const std::vector<std::string>& parts,
                        ncclResult_t code, const std::function<std::string(ncclComm_t)>& instead) {
  ncclComm_t comm = nullptr;
  if (std::string wrong = testing::init(ranks, comm); !wrong.empty()) return wrong;
  Memory memory;
  for (int i = 0; i < 9; ++i)
    if (std::string wrong = testing::must(all_reduce(100)(comm, memory), "all-reduce"); !wrong.empty()) return wrong;
  for (const int each : absent)
    if (ranks.rank == each) return instead(comm);
  const Ended ended = outcome(comm, all_reduce(100)(comm, memory));
  std::string wrong = expect(ended, code, parts);
  ncclCommAbort(comm);
  return wrong;
}

std::string sleep_and_abort(ncclComm_t comm) {
  std::this_thread::sleep_for(testing::patience(2500ms));
  return testing::must(ncclCommAbort(comm), "abort");
}

}  // namespace

TEST_CASE("FC-34: who is missing is said alike on all ranks that wait") {
  const testing::Variables soon = {{"SHOAL_TIMEOUT_MS", std::to_string(testing::patience(700ms).count())}};
  for (const char* transport : {"shm", "tcp"}) {
    INFO(transport);
    testing::Variables variables = testing::transport_variables(transport);
    variables.insert(variables.end(), soon.begin(), soon.end());
    CHECK(testing::as_processes(4, variables, 60, [](const Ranks& ranks) -> std::string {
            return nine_of_ten(ranks, {3}, {"rank 3 (", "has not made all_reduce #10 of 100 float32, sum", "all_reduce #9"},
                               ncclSystemError, sleep_and_abort);
          }) == "");
    CHECK(testing::as_processes(4, variables, 60, [](const Ranks& ranks) -> std::string {
            return nine_of_ten(ranks, {1, 3}, {"rank 1 (", " and rank 3 (", "have not made all_reduce #10 of 100 float32, sum"},
                               ncclSystemError, sleep_and_abort);
          }) == "");
    // Who leaves in order is known at once: not for the deadline's sake.
    CHECK(testing::as_processes(4, testing::transport_variables(transport), 60, [](const Ranks& ranks) -> std::string {
            return nine_of_ten(ranks, {2},
                               {"rank 2 (", "left the communicator after 9 collectives", "all_reduce #10 of 100 float32, sum"},
                               ncclInvalidUsage, [](ncclComm_t comm) { return testing::must(ncclCommDestroy(comm), "destroy"); });
          }) == "");
  }
}

TEST_CASE("mismatch: transfers that nobody answers name who waits for whom") {
  testing::Variables variables = testing::transport_variables("shm");
  variables.emplace_back("SHOAL_TIMEOUT_MS", std::to_string(testing::patience(700ms).count()));
  // A circle: everyone first receives from the next rank.
  CHECK(testing::as_processes(3, variables, 60, [](const Ranks& ranks) -> std::string {
          return with_doomed(ranks, [&](ncclComm_t comm) -> std::string {
            float value = 0;
            const ncclResult_t result = ncclRecv(&value, 1, ncclFloat, (ranks.rank + 1) % 3, comm, nullptr);
            return expect(outcome(comm, result), ncclSystemError,
                          {"wait for each other in a circle", "rank 0 for rank 1", "recv #1 of 4 bytes from rank 1"});
          });
        }) == "");
  // A chain that ends at a rank outside the library: rank 0 waits for 1, 1 for 2.
  CHECK(testing::as_processes(3, variables, 60, [](const Ranks& ranks) -> std::string {
          ncclComm_t comm = nullptr;
          if (std::string wrong = testing::init(ranks, comm); !wrong.empty()) return wrong;
          if (ranks.rank == 2) return sleep_and_abort(comm);
          float value = 0;
          const ncclResult_t result = ncclRecv(&value, 1, ncclFloat, ranks.rank + 1, comm, nullptr);
          std::string wrong = expect(outcome(comm, result), ncclSystemError,
                                     {"rank 2 (", "is outside the library", "rank 1 for rank 2 (recv #1 of 4 bytes from rank 2"});
          ncclCommAbort(comm);
          return wrong;
        }) == "");
}
