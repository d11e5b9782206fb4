// SPDX-License-Identifier: Apache-2.0
// A clock that costs a few nanoseconds to read: the processor's time stamp counter where there is one, for times that are kept
// with every call. Ticks mean something in this process only; to_ns and age_ns turn them into time, with an error of some parts
// in a thousand. Any thread.
#pragma once

#include <chrono>
#include <cstdint>

#if defined(__x86_64__) || defined(__i386__)
#include <x86intrin.h>
#endif

namespace shoal {

inline std::uint64_t ticks_now() {
#if defined(__x86_64__) || defined(__i386__)
  return __rdtsc();
#elif defined(__aarch64__)
  std::uint64_t value;
  asm volatile("mrs %0, cntvct_el0" : "=r"(value));
  return value;
#else
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

// Turns ticks of this process into nanoseconds of std::chrono::system_clock, for records that are compared between processes.
class TickScale {
 public:
  // Measures now against the first call in this process; the first call of all takes a millisecond.
  static TickScale now();

  // Since the epoch of the system's clock.
  std::int64_t system_ns(std::uint64_t ticks) const { return system_ns_ - age_ns(ticks); }
  // How long ago; negative for the future.
  std::int64_t age_ns(std::uint64_t ticks) const {
    return static_cast<std::int64_t>(static_cast<double>(static_cast<std::int64_t>(ticks_ - ticks)) * ns_per_tick_);
  }

 private:
  std::uint64_t ticks_ = 0;
  std::int64_t system_ns_ = 0;
  double ns_per_tick_ = 1;
};

}  // namespace shoal
