// SPDX-License-Identifier: Apache-2.0
#include "link/timer.h"

#include <poll.h>
#include <sys/timerfd.h>

#include <algorithm>

namespace shoal::link {

void Timer::set(std::optional<Clock::time_point> when) {
  if (when == when_) return;
  when_ = when;
  if (!descriptor_.is_open()) descriptor_ = Descriptor(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!descriptor_.is_open()) return;
  itimerspec spec{};  // zero: never
  if (when_) {        // libstdc++'s steady clock is CLOCK_MONOTONIC
    const auto at = std::max<std::chrono::nanoseconds>(when_->time_since_epoch(), std::chrono::nanoseconds(1));
    spec.it_value.tv_sec = std::chrono::duration_cast<std::chrono::seconds>(at).count();
    spec.it_value.tv_nsec = (at % std::chrono::seconds(1)).count();
  }
  timerfd_settime(descriptor_.get(), TFD_TIMER_ABSTIME, &spec, nullptr);
}

Wakeup Timer::wakeup() const {
  if (!when_ || !descriptor_.is_open()) return {};
  return {descriptor_.get(), POLLIN, false};
}

}  // namespace shoal::link
