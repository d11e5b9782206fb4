// SPDX-License-Identifier: Apache-2.0
// Rings among ranks that stand in another order than that of their numbers, because links are unlike: the plan of a rank is that
// of its position, with positions named by who stands there. Pure; any thread.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "plan/plan.h"

namespace shoal::plan {

// Plans of all ranks: whether they talk with their neighbours in the order of ranks alone, as in rings and chains, one chunk a
// message where data are blocks: neighbours among blocks, whose numbers are their ranks', are none in another order. Not those
// that promise an order of additions, which is one of ranks.
bool can_be_placed(std::span<const Plan> plans);

using Build = std::function<Plan(const Request&)>;

// What `build` makes for the request's rank, if the ranks stand in `order` (position i is rank order[i]; empty: their own): where
// the plan of positions moves block i, that of ranks moves block order[i]. Plans that cannot be placed stay as they are: the same
// decision on all ranks, for which the plans of all are built. O(world) plans, and O(world) steps in the placed one.
Plan build_placed(const Build& build, const Request& request, std::span<const Rank> order);

}  // namespace shoal::plan
