// SPDX-License-Identifier: Apache-2.0
// Small calls through shared memory do nothing but communicate: once a few of its kind have been made, the calling thread
// allocates nothing, also where it has to sleep. (Over TCP, and from 64 KiB on, a sleep allocates.)
#include <catch2/catch.hpp>
#include <new>
#include <string>
#include <vector>

#include "compress/allocations.h"
#include "support/ranks.h"

using namespace testing;

namespace {

constexpr int kWarmUp = 20, kCalls = 1000;

std::string allocates_nothing(ncclComm_t comm, std::size_t count, float ranks) {
  std::vector<float> in(count, 1.0F), out(count, 0.0F);
  std::size_t before = 0;
  for (int call = 0; call < kWarmUp + kCalls; ++call) {
    if (call == kWarmUp) before = allocations();
    const ncclResult_t result = ncclAllReduce(in.data(), out.data(), count, ncclFloat, ncclSum, comm, nullptr);
    if (std::string wrong = must(result, "all-reduce"); !wrong.empty()) return wrong;
  }
  const std::size_t made = allocations() - before;
  if (out[count - 1] != ranks) return "wrong sum\n";
  if (made == 0) return "";
  return std::to_string(made) + " allocations in " + std::to_string(kCalls) + " calls of " + std::to_string(count) + " floats\n";
}

}  // namespace

TEST_CASE("A small all-reduce through shared memory allocates nothing") {
  const int world = GENERATE(2, 3, 5);
  CAPTURE(world);
  CHECK(run_ranks("shm", world, 60, [](const Ranks& ranks) {
          return with_comm(ranks, [&](ncclComm_t comm) {
            std::string wrong;
            const std::size_t counted = allocations();
            ::operator delete(::operator new(1));
            if (allocations() != counted + 1) wrong += "allocations are not counted\n";
            for (const std::size_t count : {2UL, 1024UL})
              wrong += allocates_nothing(comm, count, static_cast<float>(ranks.world));
            return wrong;
          });
        }) == "");
}
