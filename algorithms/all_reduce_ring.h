// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/plan.h"

namespace shoal::algorithms {

plan::Plan all_reduce_ring(World world, Rank rank);

}  // namespace shoal::algorithms
