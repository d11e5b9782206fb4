// SPDX-License-Identifier: Apache-2.0
// What every field case has around it: all transports, memory with guards, and a plain call afterwards that must still be right.
#pragma once

#include <nccl.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "support/ranks.h"

namespace testing {

// Set where time is short: leaves out the largest vectors.
inline bool small() { return std::getenv("SHOAL_TEST_SMALL") != nullptr; }

// What rank r holds at i, and the sum over all ranks: whole numbers, exact in float32.
inline float held(int rank, std::size_t i) { return static_cast<float>(i % 97) + static_cast<float>(rank); }
inline float held_by_all(int world, std::size_t i) {
  return static_cast<float>(world) * static_cast<float>(i % 97) + static_cast<float>(world * (world - 1) / 2);
}

// "" if a plain all-reduce of `count` elements is right: no rank is out of step.
inline std::string plain_sum(const Ranks& ranks, ncclComm_t comm, std::size_t count = 1000) {
  std::vector<float> data(count);
  for (std::size_t i = 0; i < count; ++i) data[i] = held(ranks.rank, i);
  if (std::string wrong = must(ncclAllReduce(data.data(), data.data(), count, ncclFloat, ncclSum, comm, nullptr), "a plain sum");
      !wrong.empty())
    return wrong;
  for (std::size_t i = 0; i < count; ++i)
    if (data[i] != held_by_all(ranks.world, i)) return "a plain sum: wrong at " + std::to_string(i);
  return "";
}

using Case = std::function<std::string(const Ranks&, ncclComm_t)>;

// The case, then the plain sum.
inline std::string case_and_sum(const Ranks& ranks, const Case& body) {
  return with_comm(ranks, [&](ncclComm_t comm) {
    const std::string wrong = body(ranks, comm);
    return wrong.empty() ? plain_sum(ranks, comm) : wrong;
  });
}

inline void on_all_transports(int world, const Case& body) {
  for (const char* transport : {"threads", "shm", "tcp"}) {
    INFO(transport << ", world " << world);
    CHECK(run_ranks(transport, world, 60, [&](const Ranks& ranks) { return case_and_sum(ranks, body); }) == "");
  }
}

// `count` elements between guards.
template <typename T>
class Guarded {
 public:
  explicit Guarded(std::size_t count, T value = T{}) : memory_(count + 2 * kGuard, value), count_(count) {
    std::memset(memory_.data(), kMark, kGuard * sizeof(T));
    std::memset(data() + count, kMark, kGuard * sizeof(T));
  }
  explicit Guarded(const std::vector<T>& values) : Guarded(values.size()) { std::copy(values.begin(), values.end(), data()); }

  T* data() { return memory_.data() + kGuard; }
  std::size_t size() const { return count_; }
  T& operator[](std::size_t i) { return memory_[kGuard + i]; }
  std::vector<T> values() const {
    const auto first = memory_.begin() + static_cast<std::ptrdiff_t>(kGuard);
    return {first, first + static_cast<std::ptrdiff_t>(count_)};
  }
  bool whole() const {
    std::vector<unsigned char> guard(kGuard * sizeof(T), kMark);
    return std::memcmp(memory_.data(), guard.data(), guard.size()) == 0 &&
           std::memcmp(memory_.data() + kGuard + count_, guard.data(), guard.size()) == 0;
  }

 private:
  static constexpr std::size_t kGuard = 16;  // elements
  static constexpr unsigned char kMark = 0xA5;
  std::vector<T> memory_;
  std::size_t count_;
};

}  // namespace testing
