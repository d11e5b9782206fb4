// SPDX-License-Identifier: Apache-2.0
// Wall-clock milliseconds since it was made. A value.
#pragma once

#include <chrono>

namespace shoal::train {

class Stopwatch {
 public:
  double ms() const { return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace shoal::train
