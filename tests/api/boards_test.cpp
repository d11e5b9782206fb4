// SPDX-License-Identifier: Apache-2.0
// Collectives over boards, in orders and at paces that reuse slots early, late and across kinds of calls.
#include <nccl.h>
#include <shoal/shoal.h>

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <random>
#include <thread>

#include "support/ranks.h"

namespace {

using testing::must;
using testing::Ranks;
using testing::with_comm;
using Values = std::vector<std::int32_t>;

// What rank q gives to element i of call `step`.
std::int32_t value(int step, int q, std::size_t i) { return step * 31 + q * 7 + static_cast<std::int32_t>(i % 1000); }
std::int32_t total(int step, int world, std::size_t i) {
  std::int32_t sum = 0;
  for (int q = 0; q < world; ++q) sum += value(step, q, i);
  return sum;
}
Values given(int step, int q, std::size_t n) {
  Values values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = value(step, q, i);
  return values;
}

enum class Kind { all_reduce, reduce, broadcast, all_gather, reduce_scatter, all_to_all, gather, scatter, barrier, send_recv };
constexpr int kKinds = 10;

// One call, its result compared element by element.
std::string call(Kind kind, int step, std::size_t n, int root, const Ranks& ranks, ncclComm_t comm) {
  const int p = ranks.world, r = ranks.rank;
  const auto world = static_cast<std::size_t>(p), own = static_cast<std::size_t>(r);
  const bool whole_input = kind == Kind::reduce_scatter || kind == Kind::all_to_all || kind == Kind::scatter;
  const Values in = given(step, r, whole_input ? n * world : n);
  Values out(n * world, -1), expected(n * world, -1);
  const auto expect = [&](std::size_t at, auto f) {
    for (std::size_t i = 0; i < n; ++i) expected[at * n + i] = f(i);
  };
  ncclResult_t result = ncclSuccess;
  switch (kind) {
    case Kind::all_reduce:
      result = ncclAllReduce(in.data(), out.data(), n, ncclInt32, ncclSum, comm, nullptr);
      expect(0, [&](std::size_t i) { return total(step, p, i); });
      break;
    case Kind::reduce:
      result = ncclReduce(in.data(), out.data(), n, ncclInt32, ncclSum, root, comm, nullptr);
      if (r == root) expect(0, [&](std::size_t i) { return total(step, p, i); });
      break;
    case Kind::broadcast:
      result = ncclBroadcast(in.data(), out.data(), n, ncclInt32, root, comm, nullptr);
      expect(0, [&](std::size_t i) { return value(step, root, i); });
      break;
    case Kind::all_gather:
      result = ncclAllGather(in.data(), out.data(), n, ncclInt32, comm, nullptr);
      for (int q = 0; q < p; ++q) expect(static_cast<std::size_t>(q), [&](std::size_t i) { return value(step, q, i); });
      break;
    case Kind::reduce_scatter:
      result = ncclReduceScatter(in.data(), out.data(), n, ncclInt32, ncclSum, comm, nullptr);
      expect(0, [&](std::size_t i) { return total(step, p, own * n + i); });
      break;
    case Kind::all_to_all:
      result = ncclAlltoAll(in.data(), out.data(), n, ncclInt32, comm, nullptr);
      for (int q = 0; q < p; ++q) expect(static_cast<std::size_t>(q), [&](std::size_t i) { return value(step, q, own * n + i); });
      break;
    case Kind::gather:
      result = ncclGather(in.data(), out.data(), n, ncclInt32, root, comm, nullptr);
      if (r == root)
        for (int q = 0; q < p; ++q) expect(static_cast<std::size_t>(q), [&](std::size_t i) { return value(step, q, i); });
      break;
    case Kind::scatter:
      result = ncclScatter(in.data(), out.data(), n, ncclInt32, root, comm, nullptr);
      expect(0, [&](std::size_t i) { return value(step, root, own * n + i); });
      break;
    case Kind::barrier: result = shoalBarrier(comm, nullptr); break;
    case Kind::send_recv:
      ncclGroupStart();
      ncclSend(in.data(), n, ncclInt32, (r + 1) % p, comm, nullptr);
      ncclRecv(out.data(), n, ncclInt32, (r + p - 1) % p, comm, nullptr);
      result = ncclGroupEnd();
      expect(0, [&](std::size_t i) { return value(step, (r + p - 1) % p, i); });
      break;
  }
  if (std::string wrong = must(result, ("step " + std::to_string(step)).c_str()); !wrong.empty()) return wrong;
  if (out == expected) return "";
  return "step " + std::to_string(step) + ", kind " + std::to_string(static_cast<int>(kind)) + ", " + std::to_string(n) +
         " elements, root " + std::to_string(root) + ": wrong elements";
}

std::string random_calls(const Ranks& ranks, ncclComm_t comm, unsigned seed) {
  std::minstd_rand common(seed), own(seed * 100 + static_cast<unsigned>(ranks.rank) + 1);
  constexpr std::array<std::size_t, 9> kLengths = {0, 1, 2, 12, 13, 100, 3000, 9000, 40'000};
  for (int step = 1; step <= 150; ++step) {
    const auto kind = static_cast<Kind>(common() % kKinds);
    const std::size_t n = kLengths[common() % kLengths.size()];
    const int root = static_cast<int>(common() % static_cast<unsigned>(ranks.world));
    if (own() % 16 == 0) std::this_thread::sleep_for(std::chrono::microseconds(own() % 600));
    if (std::string wrong = call(kind, step, n, root, ranks, comm); !wrong.empty()) return wrong;
  }
  return "";
}

// Threads or processes, with more variables than the transport's.
std::string run(const std::string& transport, int world, testing::Variables more,
                const std::function<std::string(const Ranks&, ncclComm_t)>& body) {
  testing::Variables variables = testing::transport_variables(transport);
  variables.insert(variables.end(), more.begin(), more.end());
  const auto of_rank = [&](const Ranks& ranks) { return with_comm(ranks, [&](ncclComm_t comm) { return body(ranks, comm); }); };
  return transport == "threads" ? testing::as_threads(world, variables, 120, of_rank)
                                : testing::as_processes(world, variables, 120, of_rank);
}

}  // namespace

TEST_CASE("Boards: collectives of all kinds and lengths in any order, some ranks late") {
  for (const char* transport : {"threads", "shm"})
    for (const int world : {2, 3, 5})
      for (const bool forced : {true, false}) {
        testing::Variables more;
        if (world == 3) more.emplace_back("SHOAL_SPIN_US", "0");  // asleep at every wait
        if (forced) more.emplace_back("SHOAL_ALGO", "one_shot");
        CAPTURE(transport, world, forced);
        CHECK(run(transport, world, more, [&](const Ranks& ranks, ncclComm_t comm) {
                return random_calls(ranks, comm, static_cast<unsigned>(world) + (forced ? 10 : 0));
              }) == "");
      }
}

TEST_CASE("Boards: a root far ahead waits for the slowest reader, and for no one else") {
  for (const char* transport : {"threads", "shm"}) {
    CAPTURE(transport);
    CHECK(run(transport, 4, {{"SHOAL_ALGO", "one_shot"}}, [](const Ranks& ranks, ncclComm_t comm) -> std::string {
            for (int step = 0; step < 400; ++step) {
              if (ranks.rank == 3 && step % 50 == 7) std::this_thread::sleep_for(std::chrono::milliseconds(3));
              std::int64_t number = ranks.rank == 0 ? step : -1, sum = 0;
              if (std::string wrong = must(ncclBroadcast(&number, &number, 1, ncclInt64, 0, comm, nullptr), "broadcast");
                  !wrong.empty())
                return wrong;
              if (number != step) return "broadcast " + std::to_string(step) + " gave " + std::to_string(number);
              if (std::string wrong = must(ncclReduce(&number, &sum, 1, ncclInt64, ncclSum, 1, comm, nullptr), "reduce");
                  !wrong.empty())
                return wrong;
              if (ranks.rank == 1 && sum != 4 * step) return "reduce " + std::to_string(step) + " gave " + std::to_string(sum);
            }
            return "";
          }) == "");
  }
}
