// SPDX-License-Identifier: Apache-2.0
// A call that is made again and again from the same memory, which takes a shorter way: with new contents each time, and with
// everything between two of them that must lead it back to the long one.
#include <nccl.h>
#include <shoal/compress.h>
#include <shoal/shoal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "support/ranks.h"

namespace {

using testing::must;
using testing::Ranks;
using testing::run_ranks;
using testing::with_comm;

// A user's loop: the same arguments each time. Every step has other contents, and checks every element.
class Loop {
 public:
  Loop(const Ranks& ranks, ncclComm_t comm, std::size_t n, bool in_place)
      : ranks_(ranks), comm_(comm), in_place_(in_place), in_(n), out_(n) {}

  std::string step(const char* what) {
    ++step_;
    std::vector<float>& from = in_place_ ? out_ : in_;
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = value(ranks_.rank, i);
    const ncclResult_t result = ncclAllReduce(from.data(), out_.data(), out_.size(), ncclFloat, op_, comm_, stream_);
    if (std::string wrong = must(result, what); !wrong.empty()) return wrong;
    if (stream_ != nullptr)
      if (std::string wrong = must(shoalStreamSynchronize(stream_), "synchronize"); !wrong.empty()) return wrong;
    return check(what);
  }
  void use(cudaStream_t stream) { stream_ = stream; }
  void use(ncclRedOp_t op, float factor) {
    op_ = op;
    factor_ = factor;
  }

 private:
  // Whole numbers below 2^11: exact in every order, and as bfloat16 once small enough.
  float value(int rank, std::size_t i) const { return static_cast<float>((step_ * 5 + rank * 3 + static_cast<int>(i % 4)) % 16); }
  std::string check(const char* what) const {
    for (std::size_t i = 0; i < out_.size(); ++i) {
      float sum = 0;
      for (int q = 0; q < ranks_.world; ++q) sum += value(q, i);
      if (op_ == ncclMax) {
        sum = 0;
        for (int q = 0; q < ranks_.world; ++q) sum = std::max(sum, value(q, i));
      }
      if (out_[i] != sum * factor_)
        return std::string(what) + ": element " + std::to_string(i) + " is " + std::to_string(out_[i]) + ", not " +
               std::to_string(sum * factor_) + "\n";
    }
    return "";
  }

  const Ranks& ranks_;
  ncclComm_t comm_;
  bool in_place_;
  std::vector<float> in_, out_;
  int step_ = 0;
  ncclRedOp_t op_ = ncclSum;
  float factor_ = 1;
  cudaStream_t stream_ = nullptr;
};

std::string again(Loop& loop, const char* after) {
  std::string wrong;
  for (int i = 0; i < 3; ++i) wrong += loop.step(after);
  return wrong;
}

std::string everything_between(const Ranks& ranks, ncclComm_t comm, std::size_t n, bool in_place) {
  Loop loop(ranks, comm, n, in_place), other(ranks, comm, n + 1, false);
  std::string wrong = again(loop, "the first ones");
  wrong += other.step("another buffer");
  wrong += again(loop, "after another buffer");

  std::int64_t one = 1, sum = 0;
  wrong += must(ncclAllReduce(&one, &sum, 1, ncclInt64, ncclSum, comm, nullptr), "another type");
  wrong += again(loop, "another type");
  wrong += must(ncclBroadcast(&one, &sum, 1, ncclInt64, ranks.world - 1, comm, nullptr), "broadcast");
  wrong += again(loop, "a broadcast");

  loop.use(ncclMax, 1);
  wrong += again(loop, "another reduction");
  loop.use(ncclAvg, 1.0F / static_cast<float>(ranks.world));
  if (ranks.world == 1 || ranks.world == 2 || ranks.world == 4) wrong += again(loop, "a mean");
  ncclRedOp_t twice = ncclSum;
  float factor = 2;
  wrong += must(ncclRedOpCreatePreMulSum(&twice, &factor, ncclFloat, ncclScalarHostImmediate, comm), "a factor");
  loop.use(twice, factor);
  wrong += again(loop, "a factor");
  // What a call of a user's own reduction means is not kept: the one that is must not be taken for it.
  for (int i = 0; i < 3; ++i) {
    loop.use(ncclSum, 1);
    wrong += loop.step("the sum in turn");
    loop.use(twice, factor);
    wrong += loop.step("the factor in turn");
  }
  wrong += must(ncclRedOpDestroy(twice, comm), "its end");
  loop.use(ncclSum, 1);
  wrong += again(loop, "the sum again");

  wrong += must(ncclGroupStart(), "group");
  wrong += must(ncclGroupEnd(), "group's end");
  wrong += again(loop, "an empty group");
  if (ranks.world > 1) {
    const int to = (ranks.rank + 1) % ranks.world, from = (ranks.rank + ranks.world - 1) % ranks.world;
    wrong += must(ncclGroupStart(), "group");
    wrong += must(ncclSend(&one, 1, ncclInt64, to, comm, nullptr), "send");
    wrong += must(ncclRecv(&sum, 1, ncclInt64, from, comm, nullptr), "receive");
    wrong += must(ncclGroupEnd(), "group's end");
    wrong += again(loop, "transfers");
  }
  cudaStream_t stream = nullptr;
  wrong += must(shoalStreamCreate(&stream), "stream");
  loop.use(stream);
  wrong += again(loop, "on a stream");
  loop.use(cudaStream_t{});
  wrong += again(loop, "back on none");
  wrong += must(shoalStreamDestroy(stream), "stream's end");

  for (const shoalNumerics numerics : {shoalExact, shoalOrdered, shoalFast}) {
    wrong += must(shoalCommSetNumerics(comm, numerics), "numerics");
    wrong += again(loop, "other numerics");
  }
  for (const char* format : {"bf16", "none"}) {
    wrong += must(shoalCommSetWireFormat(comm, format), "wire format");
    wrong += again(loop, "another wire format");
  }

  ncclComm_t child = nullptr;
  wrong += must(ncclCommSplit(comm, 0, ranks.rank, &child, nullptr), "split");
  wrong += again(loop, "a split");
  Loop on_child(ranks, child, n, in_place);
  for (int i = 0; i < 3; ++i) {
    wrong += on_child.step("the child's turn");
    wrong += loop.step("the parent's turn");
  }
  wrong += must(ncclCommDestroy(child), "the child's end");
  return wrong + again(loop, "the child's end");
}

}  // namespace

TEST_CASE("A call that is made again gives the sum of what its memory holds now, whatever came between") {
  const int world = GENERATE(1, 2, 3, 4, 5);
  const bool in_place = GENERATE(false, true);
  CAPTURE(world, in_place);
  CHECK(run_ranks("shm", world, 120, [&](const Ranks& ranks) {
          return with_comm(ranks, [&](ncclComm_t comm) {
            std::string wrong;
            for (const std::size_t n : {1UL, 2UL, 12UL, 13UL, 1000UL, 30000UL})
              wrong += everything_between(ranks, comm, n, in_place);
            return wrong;
          });
        }) == "");
}

// A step of training: calls of several kinds, lengths and buffers by turns, more of them than a communicator keeps.
TEST_CASE("Calls that go by turns give what their memory holds now, few or many of them") {
  const int world = GENERATE(1, 2, 3, 5);
  CAPTURE(world);
  CHECK(run_ranks("shm", world, 120, [&](const Ranks& ranks) {
          return with_comm(ranks, [&](ncclComm_t comm) {
            std::vector<Loop> loops;
            for (const std::size_t n : {1UL, 3UL, 40UL, 41UL, 700UL, 5000UL, 30000UL, 1UL, 70000UL, 9UL, 40000UL})
              for (const bool in_place : {false, true}) loops.emplace_back(ranks, comm, n, in_place);
            std::string wrong;
            for (const std::size_t turns : {std::size_t{2}, std::size_t{4}, std::size_t{5}, std::size_t{9}, loops.size()})
              for (std::size_t step = 0; step < 3 * turns && wrong.empty(); ++step) {
                wrong += loops[step % turns].step("in turn");
                std::int64_t mine = static_cast<std::int64_t>(step) * (ranks.rank + 1);
                const int root = static_cast<int>(step) % world;
                if (step % 2 == 0) wrong += must(ncclBroadcast(&mine, &mine, 1, ncclInt64, root, comm, nullptr), "broadcast");
                if (step % 2 == 0 && mine != static_cast<std::int64_t>(step) * (root + 1)) wrong += "a copy is wrong\n";
              }
            return wrong;
          });
        }) == "");
}

// From some length on all ranks ask each other first whether their buffers can be mapped: all or none, however late one is.
TEST_CASE("Long calls that are made again stay together, whoever is late") {
  const int world = GENERATE(2, 3, 4);
  const std::size_t n = GENERATE(16384U, 32768U, 262144U);
  CAPTURE(world, n);
  CHECK(run_ranks("shm", world, 120, [&](const Ranks& ranks) {
          return with_comm(ranks, [&](ncclComm_t comm) {
            std::vector<float> values(n), sums(n);
            std::string wrong;
            for (int step = 0; step < 60 && wrong.empty(); ++step) {
              const int root = step / 20 % world;
              values.assign(n, static_cast<float>(step * (ranks.rank + 1)));
              if ((step * 7 + ranks.rank * 5) % 11 < 3) std::this_thread::sleep_for(std::chrono::microseconds(300));
              if (step % 3 == 0)
                wrong += must(ncclReduce(values.data(), sums.data(), n, ncclFloat, ncclSum, root, comm, nullptr), "reduce");
              wrong += must(ncclBroadcast(values.data(), values.data(), n, ncclFloat, root, comm, nullptr), "broadcast");
              const float sum = static_cast<float>(step * world * (world + 1) / 2), given = static_cast<float>(step * (root + 1));
              if (step % 3 == 0 && ranks.rank == root && std::ranges::count(sums, sum) != static_cast<std::ptrdiff_t>(n))
                wrong += "a sum is wrong\n";
              if (std::ranges::count(values, given) != static_cast<std::ptrdiff_t>(n)) wrong += "a copy is wrong\n";
            }
            return wrong;
          });
        }) == "");
}

TEST_CASE("A call that is made again is refused when its communicator takes no more calls") {
  const bool revoked = GENERATE(false, true);
  CHECK(run_ranks("shm", 2, 60, [&](const Ranks& ranks) {
          return with_comm(ranks, [&](ncclComm_t comm) -> std::string {
            Loop loop(ranks, comm, 4, false);
            std::string wrong = again(loop, "before");
            wrong += revoked ? must(ncclCommRevoke(comm, 0), "revoke") : must(ncclCommFinalize(comm), "finalize");
            float in = 1, out = 0;
            const ncclResult_t result = ncclAllReduce(&in, &out, 1, ncclFloat, ncclSum, comm, nullptr);
            const ncclResult_t same = loop.step("").empty() ? ncclSuccess : result;
            if (result == ncclSuccess || same == ncclSuccess) wrong += "a call was taken\n";
            return wrong;
          });
        }) == "");
}
