// SPDX-License-Identifier: Apache-2.0
// When messages arrive over a wire as a Shim describes it: one direction between two ranks. Kept by the sending side, used by the
// thread that drives its links.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "core/shim.h"
#include "core/types.h"

namespace shoal::transports {

class Pace {
 public:
  using Clock = std::chrono::steady_clock;

  // `direction`: another number, another jitter.
  Pace(const Shim& shim, std::uint64_t direction)
      : latency_(shim.latency),
        jitter_(static_cast<std::uint64_t>(shim.jitter.count())),
        ns_per_byte_(1e9 / shim.bandwidth_Bps),
        state_(shim.seed * 0x9e3779b97f4a7c15 + direction) {}

  // When a message that is sent now is there. Never before an earlier one.
  Clock::time_point due(Clock::time_point now, Bytes size) {
    const std::chrono::nanoseconds on_wire(static_cast<std::int64_t>(static_cast<double>(size.value) * ns_per_byte_));
    free_ = std::max(now, free_) + on_wire;
    last_ = std::max(last_, free_ + latency_ + draw());
    return last_;
  }

 private:
  // Splitmix64 (Steele, Lea, Flood 2014).
  std::chrono::nanoseconds draw() {
    if (jitter_ == 0) return std::chrono::nanoseconds(0);
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return std::chrono::nanoseconds(static_cast<std::int64_t>((z ^ (z >> 31)) % (jitter_ + 1)));
  }

  std::chrono::nanoseconds latency_;
  std::uint64_t jitter_;  // [ns]
  double ns_per_byte_;    // 0: the wire is never waited for
  std::uint64_t state_;
  Clock::time_point free_{};
  Clock::time_point last_{};
};

}  // namespace shoal::transports
