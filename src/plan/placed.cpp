// SPDX-License-Identifier: Apache-2.0
#include "plan/placed.h"

#include <algorithm>

namespace shoal::plan {
namespace {

bool keeps_to_neighbours(const Plan& plan) {
  if (!plan.refusal.empty() || plan.shared > 0 || plan.boards != Boards::unused || plan.order != Order::any) return false;
  const auto is_neighbour = [&](const Rotating& peer) {
    const Rank rank{peer.at(0)};
    return peer.stride == 0 && (rank == next(plan.rank, plan.world) || rank == prev(plan.rank, plan.world));
  };
  for (const Lane& lane : plan.lanes)
    for (const Loop& loop : lane.loops)
      for (const Step& step : loop.steps)
        if ((sends(step.op) && !is_neighbour(step.to)) || (receives(step.op) && !is_neighbour(step.from))) return false;
  return true;
}

Rank position_of(Rank rank, std::span<const Rank> order) {
  return {static_cast<std::int32_t>(std::ranges::find(order, rank) - order.begin())};
}

void rename(Rotating& peer, std::span<const Rank> order) { peer = fixed(order[static_cast<std::size_t>(peer.at(0))]); }

}  // namespace

bool can_be_placed(std::span<const Plan> plans) {
  return !plans.empty() && !in_blocks(plans.front().collective) && std::ranges::all_of(plans, keeps_to_neighbours);
}

Plan build_placed(const Build& build, const Request& request, std::span<const Rank> order) {
  if (order.empty() || in_blocks(request.collective)) return build(request);
  Request at = request;
  if (has_root(request.collective)) at.root = position_of(request.root, order);
  std::vector<Plan> plans;
  for (at.rank = {0}; at.rank.value < request.world.value; ++at.rank.value) plans.push_back(build(at));
  if (!can_be_placed(plans)) return build(request);
  Plan plan = std::move(plans[static_cast<std::size_t>(position_of(request.rank, order).value)]);
  plan.rank = request.rank;
  plan.root = request.root;
  for (Lane& lane : plan.lanes)
    for (Loop& loop : lane.loops)
      for (Step& step : loop.steps) {
        if (sends(step.op)) rename(step.to, order);
        if (receives(step.op)) rename(step.from, order);
      }
  return plan;
}

}  // namespace shoal::plan
