// SPDX-License-Identifier: Apache-2.0
// A point in time that one can poll for, beside descriptors. Owned by whoever waits; one thread.
#pragma once

#include <chrono>
#include <optional>

#include "link/link.h"
#include "link/socket.h"

namespace shoal::link {

class Timer {
 public:
  using Clock = std::chrono::steady_clock;

  // Polls readable from then on; nothing: never. Without effect where the system has no descriptor left: the owner of a timer
  // looks at the clock in its progress() anyway, and only sleeps longer than it wished.
  void set(std::optional<Clock::time_point> when);
  Wakeup wakeup() const;

 private:
  Descriptor descriptor_;  // opened when first needed
  std::optional<Clock::time_point> when_;
};

}  // namespace shoal::link
