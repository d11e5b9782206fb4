// SPDX-License-Identifier: Apache-2.0
// When patience ends: at a moment, never, or when something else ends it. Value type.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <utility>

namespace shoal::comm {

// Whether a wait is to end at once, although its time is not over: its communicator is aborted, say. Called often, from the
// waiting thread. An empty function: no.
using Interrupted = std::function<bool()>;

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  // 0: never.
  explicit Deadline(std::chrono::milliseconds from_now, Interrupted interrupted = {}) : interrupted_(std::move(interrupted)) {
    if (from_now.count() > 0) end_ = Clock::now() + from_now;
  }

  bool interrupted() const { return interrupted_ && interrupted_(); }
  bool passed() const { return (end_ && Clock::now() >= *end_) || interrupted(); }
  // For poll(): what is left, at most `longest`, and never so much that an interruption would go unnoticed; rounded up, so that
  // waiting it out makes passed() true.
  int poll_ms(std::chrono::milliseconds longest) const {
    if (interrupted_) longest = std::min(longest, kLookEvery);
    if (!end_) return static_cast<int>(longest.count());
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*end_ - Clock::now());
    return static_cast<int>(std::clamp(left, std::chrono::milliseconds(0), longest).count());
  }

 private:
  static constexpr std::chrono::milliseconds kLookEvery{50};
  std::optional<Clock::time_point> end_;
  Interrupted interrupted_;
};

}  // namespace shoal::comm
