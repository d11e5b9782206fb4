// SPDX-License-Identifier: Apache-2.0
// Calls on memory of ncclMemAlloc, which ranks read and write in place: all collectives, in place and not, at odd offsets; memory
// that only some ranks have; memory that is freed and taken anew.
#include <nccl.h>
#include <shoal/shoal.h>

#include <catch2/catch.hpp>
#include <vector>

#include "api/checked_calls.h"

namespace {

using namespace testing;

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

TEST_CASE("Mapped: short calls ask now and then, and again at once where they were heard") {
  for (const char* transport : {"threads", "shm"}) {
    CAPTURE(transport);
    CHECK(run(transport, 3, {}, [](const Ranks& ranks, ncclComm_t comm) -> std::string {
            std::string wrong;
            for (int round = 0; round < 240 && wrong.empty(); ++round) {
              const bool shared = round / 40 % 2 == 1, unlike = round % 11 == 0 && ranks.rank == 1;
              const auto kind = static_cast<Kind>(round % 40 < 20 ? 0 : round % kKinds);
              wrong = call(kind, round % 3 == 0 ? 2'500 : 7'001, round % 3, round % 2 == 0, shared != unlike, ranks, comm);
            }
            // The same call, again and again, of memory that nobody can map; then of memory that all can.
            for (const bool shared : {false, true, false}) {
              const Array in(shared, 4'000), out(shared, 4'000);
              for (int i = 0; i < 4'000; ++i) in.data()[i] = value(ranks.rank, static_cast<std::size_t>(i));
              for (int again = 0; again < 50 && wrong.empty(); ++again) {
                in.data()[again] = again + ranks.rank;
                wrong = must(ncclAllReduce(in.data(), out.data(), 4'000, ncclInt32, ncclSum, comm, nullptr), "all-reduce");
                for (int i = 0; i < 4'000 && wrong.empty(); ++i) {
                  const int base = value(0, static_cast<std::size_t>(i)) * 3 + 3'000, now = 3 * i + 3;
                  if (out.data()[i] != (i <= again ? now : base))
                    wrong = "call " + std::to_string(again) + ", element " + std::to_string(i);
                }
              }
            }
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
