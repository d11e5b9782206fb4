// SPDX-License-Identifier: Apache-2.0
// What was meant against what was sent: the error of a call, and the residual that is kept of it.
#pragma once

#include <cmath>
#include <span>

#include "compress/compressor.h"

namespace shoal::compress {

// Adds to the report's sums; in float64.
inline void add_error(std::span<const float> meant, std::span<const float> sent, Report& report) {
  for (std::size_t i = 0; i < meant.size(); ++i) {
    const double off = static_cast<double>(meant[i]) - static_cast<double>(sent[i]);
    report.squared_error += off * off;
    report.squared_norm += static_cast<double>(meant[i]) * static_cast<double>(meant[i]);
  }
}

// residual = meant - sent, where that is finite: what is not stays as it was.
inline void keep_residual(std::span<const float> meant, std::span<const float> sent, std::span<float> residual) {
  for (std::size_t i = 0; i < meant.size(); ++i) {
    const float left = meant[i] - sent[i];
    residual[i] = std::isfinite(left) ? left : residual[i];
  }
}

}  // namespace shoal::compress
