// SPDX-License-Identifier: Apache-2.0
// Deadlines that suit the machine: SHOAL_TEST_PATIENCE=n makes those that tests set n times as long, where links take longer to
// be made than usual (an emulated processor, devices of software).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdlib>

namespace testing {

inline std::chrono::milliseconds patience(std::chrono::milliseconds usual) {
  const char* const times = std::getenv("SHOAL_TEST_PATIENCE");
  return usual * std::clamp(times != nullptr ? std::atoi(times) : 1, 1, 100);
}

}  // namespace testing
