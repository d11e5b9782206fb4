// SPDX-License-Identifier: Apache-2.0
// Calls on memory of ncclMemAlloc, which ranks read and write in place: all collectives, in place and not, at odd offsets; memory
// that only some ranks have; memory that is freed and taken anew.
#include <nccl.h>
#include <shoal/shoal.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <vector>

#include "support/ranks.h"

namespace {

using testing::must;
using testing::Ranks;
using testing::with_comm;

// Of ncclMemAlloc, or of malloc.
class Array {
 public:
  Array(bool shared, std::size_t elements) : shared_(shared) {
    void* memory = nullptr;
    if (!shared)
      memory = std::calloc(elements + 1, sizeof(std::int32_t));
    else if (ncclMemAlloc(&memory, (elements + 1) * sizeof(std::int32_t)) != ncclSuccess)
      memory = nullptr;
    start_ = static_cast<std::int32_t*>(memory);
  }
  ~Array() {
    if (shared_)
      ncclMemFree(start_);
    else
      std::free(start_);
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  std::int32_t* data() const { return start_ == nullptr ? nullptr : start_ + 1; }  // at no cache line

 private:
  bool shared_;
  std::int32_t* start_;
};

std::int32_t value(int q, std::size_t i) { return q * 1000 + static_cast<std::int32_t>(i % 977); }

enum class Kind { all_reduce, reduce, broadcast, all_gather, reduce_scatter, all_to_all, gather, scatter };
constexpr int kKinds = 8;

// One call of n elements a block. What comes out is compared element by element, what is not to be written must stay.
std::string call(Kind kind, std::size_t n, int root, bool in_place, bool shared, const Ranks& ranks, ncclComm_t comm) {
  const auto world = static_cast<std::size_t>(ranks.world), own = static_cast<std::size_t>(ranks.rank);
  const bool all_in = kind == Kind::reduce_scatter || kind == Kind::all_to_all || kind == Kind::scatter;
  const bool all_out = kind == Kind::all_gather || kind == Kind::all_to_all || kind == Kind::gather;
  const bool on_root = kind == Kind::reduce || kind == Kind::gather;
  in_place = in_place && kind != Kind::all_to_all;
  const std::size_t ins = n * (all_in ? world : 1), outs = n * (all_out ? world : 1), most = std::max(ins, outs);
  const Array first(shared, most), second(shared, most);
  std::int32_t* in = first.data();
  std::int32_t* out = in_place ? in : second.data();
  if (in == nullptr || out == nullptr) return "no memory";
  if (in_place && ins < outs) in += own * n;
  if (in_place && ins > outs) out += own * n;
  for (std::size_t i = 0; i < ins; ++i) in[i] = value(ranks.rank, i);
  if (!in_place) std::fill_n(out, outs, -1);
  std::vector<std::int32_t> expected(outs);
  const auto sum = [&](std::size_t i) {
    std::int32_t all = 0;
    for (int q = 0; q < ranks.world; ++q) all += value(q, i);
    return all;
  };
  for (std::size_t i = 0; i < outs; ++i) {
    const auto block = static_cast<int>(i / n);
    switch (kind) {
      case Kind::all_reduce:
      case Kind::reduce: expected[i] = sum(i); break;
      case Kind::reduce_scatter: expected[i] = sum(own * n + i); break;
      case Kind::broadcast: expected[i] = value(root, i); break;
      case Kind::all_gather:
      case Kind::gather: expected[i] = value(block, i % n); break;
      case Kind::all_to_all: expected[i] = value(block, own * n + i % n); break;
      case Kind::scatter: expected[i] = value(root, own * n + i); break;
    }
  }
  const bool written = !on_root || ranks.rank == root;
  if (!written && !in_place) std::fill(expected.begin(), expected.end(), -1);
  ncclResult_t result = ncclSuccess;
  switch (kind) {
    case Kind::all_reduce: result = ncclAllReduce(in, out, n, ncclInt32, ncclSum, comm, nullptr); break;
    case Kind::reduce: result = ncclReduce(in, out, n, ncclInt32, ncclSum, root, comm, nullptr); break;
    case Kind::broadcast: result = ncclBroadcast(in, out, n, ncclInt32, root, comm, nullptr); break;
    case Kind::all_gather: result = ncclAllGather(in, out, n, ncclInt32, comm, nullptr); break;
    case Kind::reduce_scatter: result = ncclReduceScatter(in, out, n, ncclInt32, ncclSum, comm, nullptr); break;
    case Kind::all_to_all: result = ncclAlltoAll(in, out, n, ncclInt32, comm, nullptr); break;
    case Kind::gather: result = ncclGather(in, out, n, ncclInt32, root, comm, nullptr); break;
    case Kind::scatter: result = ncclScatter(in, out, n, ncclInt32, root, comm, nullptr); break;
  }
  const std::string what = "kind " + std::to_string(static_cast<int>(kind)) + ", " + std::to_string(n) + " elements, root " +
                           std::to_string(root) + (in_place ? ", in place" : "") + (shared ? ", shared" : "");
  if (std::string wrong = must(result, what.c_str()); !wrong.empty()) return wrong;
  if (!(written || !in_place) || std::memcmp(out, expected.data(), outs * sizeof(std::int32_t)) == 0) return "";
  return what + ": wrong elements";
}

std::string run(const std::string& transport, int world, testing::Variables more,
                const std::function<std::string(const Ranks&, ncclComm_t)>& body) {
  testing::Variables variables = testing::transport_variables(transport);
  variables.insert(variables.end(), more.begin(), more.end());
  const auto of_rank = [&](const Ranks& ranks) { return with_comm(ranks, [&](ncclComm_t comm) { return body(ranks, comm); }); };
  return transport == "threads" ? testing::as_threads(world, variables, 120, of_rank)
                                : testing::as_processes(world, variables, 120, of_rank);
}

constexpr std::size_t kLong = 20'011;  // elements: above what is tried at all

}  // namespace

TEST_CASE("Mapped: every collective, in place and not, from any root") {
  for (const char* transport : {"threads", "shm"})
    for (const int world : {2, 3, 5})
      for (const char* disabled : {"0", "1"}) {
        CAPTURE(transport, world, disabled);
        CHECK(run(transport, world, {{"SHOAL_MAPPED_DISABLE", disabled}}, [](const Ranks& ranks, ncclComm_t comm) {
                std::string wrong;
                for (int kind = 0; kind < kKinds; ++kind)
                  for (const bool in_place : {false, true})
                    for (const std::size_t n : {kLong, kLong * 3, std::size_t{16}})
                      if (wrong.empty())
                        wrong = call(static_cast<Kind>(kind), n, (kind + 1) % ranks.world, in_place, true, ranks, comm);
                return wrong;
              }) == "");
      }
}

TEST_CASE("Mapped: where one rank's memory cannot be mapped, all take another way, call by call") {
  for (const char* transport : {"threads", "shm"}) {
    CAPTURE(transport);
    CHECK(run(transport, 3, {}, [](const Ranks& ranks, ncclComm_t comm) {
            std::string wrong;
            for (int step = 0; step < 12 && wrong.empty(); ++step)
              wrong = call(static_cast<Kind>(step % kKinds), kLong, 1, step % 2 == 0, step % 4 != ranks.rank, ranks, comm);
            return wrong;
          }) == "");
  }
}

TEST_CASE("Mapped: sums of all kinds are those of any other memory, bit for bit") {
  for (const char* transport : {"threads", "shm"}) {
    CAPTURE(transport);
    CHECK(run(transport, 3, {}, [](const Ranks& ranks, ncclComm_t comm) -> std::string {
            constexpr std::size_t kBytes = 200'000;
            void* memory = nullptr;
            if (ncclMemAlloc(&memory, 2 * kBytes) != ncclSuccess) return "no memory";
            auto* const in = static_cast<unsigned char*>(memory);
            std::string wrong;
            for (const ncclDataType_t type : {ncclInt8, ncclFloat16, ncclBfloat16, ncclFloat32, ncclFloat64, ncclInt64})
              for (const ncclRedOp_t op : {ncclSum, ncclProd, ncclMax, ncclAvg}) {
                const std::size_t width = type == ncclInt8                              ? 1
                                          : type == ncclFloat16 || type == ncclBfloat16 ? 2
                                          : type == ncclFloat32                         ? 4
                                                                                        : 8;
                for (std::size_t i = 0; i < kBytes; ++i)  // small exponents: no NaN, whose bits may differ
                  in[i] = static_cast<unsigned char>((i * 31 + static_cast<std::size_t>(ranks.rank) * 17) % 64);
                std::vector<unsigned char> elsewhere(in, in + kBytes), sum(kBytes);
                const ncclResult_t one = ncclAllReduce(in, in + kBytes, kBytes / width, type, op, comm, nullptr);
                const ncclResult_t two =
                    shoalAllReduce(elsewhere.data(), sum.data(), kBytes / width, type, op, shoalFast, comm, nullptr);
                if (one != ncclSuccess || two != ncclSuccess) return ncclGetLastError(comm);
                // Both add in the order of ranks if both are cut alike; floats' sums may differ where a ring adds them otherwise.
                const bool exact = type == ncclInt8 || type == ncclInt64 || op == ncclMax;
                if (exact && std::memcmp(in + kBytes, sum.data(), kBytes) != 0)
                  wrong += "type " + std::to_string(type) + ", op " + std::to_string(op) + ": other bits\n";
                std::vector<unsigned char> again(kBytes);
                if (ncclBroadcast(in + kBytes, again.data(), kBytes, ncclUint8, 0, comm, nullptr) != ncclSuccess)
                  return "broadcast";
                if (std::memcmp(in + kBytes, again.data(), kBytes) != 0)
                  wrong += "type " + std::to_string(type) + ", op " + std::to_string(op) + ": ranks differ\n";
              }
            ncclMemFree(memory);
            return wrong;
          }) == "");
  }
}

TEST_CASE("Mapped: memory that is freed and taken anew, by one rank more often than by others") {
  CHECK(run("shm", 3, {}, [](const Ranks& ranks, ncclComm_t comm) -> std::string {
          std::unique_ptr<Array> in, out;
          for (int step = 0; step < 60; ++step) {
            if (in == nullptr || step % (ranks.rank + 2) == 0) {
              out.reset();
              in = std::make_unique<Array>(true, kLong);
              out = std::make_unique<Array>(true, kLong);
            }
            for (std::size_t i = 0; i < kLong; ++i) in->data()[i] = value(ranks.rank, i) + step;
            if (std::string wrong =
                    must(ncclAllReduce(in->data(), out->data(), kLong, ncclInt32, ncclSum, comm, nullptr), "all-reduce");
                !wrong.empty())
              return wrong;
            for (std::size_t i = 0; i < kLong; ++i)
              if (out->data()[i] != value(0, i) + value(1, i) + value(2, i) + 3 * step)
                return "step " + std::to_string(step) + ", element " + std::to_string(i);
          }
          return "";
        }) == "");
}
