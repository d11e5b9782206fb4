// SPDX-License-Identifier: Apache-2.0
// What can be said of plans without running them: that their headers agree and that each step is well formed. Pure.
#pragma once

#include <span>

#include "core/status.h"
#include "plan/plan.h"

namespace shoal::plan::checker {

// "ring of 4 ranks", "binomial of 4 ranks, root 2": how errors begin.
std::string title(const Plan& plan);
// "rank 3", "rank 3, lane 1" where there are several.
std::string title(const Plan& plan, std::size_t lane);

// Ok, or the first plan or step that cannot be right.
Status check_shape(std::span<const Plan> plans);

}  // namespace shoal::plan::checker
