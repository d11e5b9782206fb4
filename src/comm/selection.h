// SPDX-License-Identifier: Apache-2.0
// Which algorithm a call runs: a pure function of the call and of what all ranks agreed on.
#pragma once

#include "algorithms/algorithms.h"
#include "comm/settings.h"

namespace shoal::comm {

const algorithms::Algorithm& select(plan::Collective collective, Bytes size, World world, const Settings& settings);

}  // namespace shoal::comm
