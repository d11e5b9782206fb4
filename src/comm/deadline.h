// SPDX-License-Identifier: Apache-2.0
// When patience ends: a moment, or never. Value type.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

namespace shoal::comm {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  // 0: never.
  explicit Deadline(std::chrono::milliseconds from_now) {
    if (from_now.count() > 0) end_ = Clock::now() + from_now;
  }

  bool passed() const { return end_ && Clock::now() >= *end_; }
  // For poll(): what is left, at most `longest`; rounded up, so that waiting it out makes passed() true.
  int poll_ms(std::chrono::milliseconds longest) const {
    if (!end_) return static_cast<int>(longest.count());
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*end_ - Clock::now());
    return static_cast<int>(std::clamp(left, std::chrono::milliseconds(0), longest).count());
  }

 private:
  std::optional<Clock::time_point> end_;
};

}  // namespace shoal::comm
