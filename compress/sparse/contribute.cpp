// SPDX-License-Identifier: Apache-2.0
#include "compress/sparse/contribute.h"

namespace shoal::compress::sparse {
namespace {

// In float64. What was meant is what the step made: the next residual, before what is sent is taken out of it.
void measure_error(EntriesView sent, const Accumulation& step, std::size_t n, Report& report) {
  std::size_t entry = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double meant = step.residual != nullptr ? step.next_residual[i] : step.scale * step.input[i];
    const bool is_sent = entry < sent.size() && sent.indices[entry] == i;
    const double off = is_sent ? meant - static_cast<double>(sent.values[entry]) : meant;
    entry += is_sent ? 1 : 0;
    report.squared_error += off * off;
    report.squared_norm += meant * meant;
  }
}

}  // namespace

Contribution contribute(Selector& selector, const Accumulation& step, std::size_t n, ValueType type, bool masks, bool measure,
                        Report& report) {
  if (!selector.finite()) return {.finite = false};
  if (type != ValueType::fp32)
    for (float& value : selector.values()) value = rounded(value, type);
  const EntriesView sent = selector.selected();
  report.selected = sent.size();
  if (measure) measure_error(sent, step, n, report);
  for (std::size_t i = 0; i < sent.size(); ++i) {
    const std::uint32_t index = sent.indices[i];
    if (step.residual != nullptr) step.next_residual[index] -= sent.values[i];
    if (masks && step.velocity != nullptr) step.next_velocity[index] = 0;
  }
  return {.entries = sent, .values = type};
}

}  // namespace shoal::compress::sparse
