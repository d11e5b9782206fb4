// SPDX-License-Identifier: Apache-2.0
// A fence for two sides of which one acts often and the other rarely: the rare side runs the full fence for both, in all
// processes that take part (membarrier), so that the frequent side needs none. Linux 4.16; where it is missing or forbidden,
// takes_part() is false and both sides fence.
#pragma once

#include <atomic>

namespace shoal::link {

class RemoteFence {
 public:
  // From then on this process takes part, if it can. Any thread, any number of times.
  static void join();
  static bool takes_part() { return joined_.load(std::memory_order_relaxed); }
  // A full fence on every thread of every process that takes part. Some microseconds. Only where takes_part().
  static void everywhere();

 private:
  static std::atomic<bool> joined_;
};

}  // namespace shoal::link
