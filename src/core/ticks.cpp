// SPDX-License-Identifier: Apache-2.0
#include "core/ticks.h"

namespace shoal {
namespace {

using Clock = std::chrono::steady_clock;

struct Mark {
  std::uint64_t ticks;
  Clock::time_point at;
};

Mark mark() { return {ticks_now(), Clock::now()}; }

}  // namespace

TickScale TickScale::now() {
  static const Mark first = mark();
  Mark last = mark();
  while (last.at - first.at < std::chrono::milliseconds(1)) last = mark();
  TickScale scale;
  scale.ticks_ = last.ticks;
  scale.system_ns_ =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  const auto ns = std::chrono::duration<double, std::nano>(last.at - first.at).count();
  if (last.ticks > first.ticks) scale.ns_per_tick_ = ns / static_cast<double>(last.ticks - first.ticks);
  return scale;
}

}  // namespace shoal
