// SPDX-License-Identifier: Apache-2.0
// All-reduce: every rank gets the reduction over all. A ring moves 2(n-1)/n bytes a rank for each byte of the array.
#pragma once

#include "perf/collective.h"

namespace shoal::perf {

extern const Collective kAllReduce;

}  // namespace shoal::perf
