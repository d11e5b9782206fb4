// SPDX-License-Identifier: Apache-2.0
// From what is selected to what is sent, and what is left of it.
#pragma once

#include "compress/compressor.h"
#include "compress/sparse/schedules.h"
#include "compress/sparse/select.h"

namespace shoal::compress::sparse {

// After selector.select(step, ...): rounds the selected values to what the wire holds, leaves the difference in
// step.next_residual, and clears step.next_velocity there if `masks`. Counts in the report; errors, too, if `measure`.
// If the step is not finite, neither is the contribution, and nothing else is done.
Contribution contribute(Selector& selector, const Accumulation& step, std::size_t n, ValueType type, bool masks, bool measure,
                        Report& report);

}  // namespace shoal::compress::sparse
