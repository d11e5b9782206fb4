// SPDX-License-Identifier: Apache-2.0
#include "plan/placed.h"

#include <algorithm>

namespace shoal::plan {
namespace {

// Blocks that lie beside each other, in a message or in scratch, lie elsewhere once they are renamed.
bool is_one_block(const Chunk& chunk) {
  return chunk.buffer == Buffer::none || ((chunk.buffer == Buffer::input || chunk.buffer == Buffer::output) && chunk.size == 1);
}

bool can_be_placed(const Plan& plan) {
  if (!plan.refusal.empty() || plan.shared > 0 || plan.boards != Boards::unused || plan.order != Order::any) return false;
  const bool blocks = in_blocks(plan.collective);
  const auto is_neighbour = [&](const Rotating& peer) {
    const Rank rank{peer.at(0)};
    return peer.stride == 0 && (rank == next(plan.rank, plan.world) || rank == prev(plan.rank, plan.world));
  };
  for (const Lane& lane : plan.lanes)
    for (const Loop& loop : lane.loops)
      for (const Step& step : loop.steps) {
        if ((sends(step.op) && !is_neighbour(step.to)) || (receives(step.op) && !is_neighbour(step.from))) return false;
        if (blocks && (!is_one_block(step.source) || !is_one_block(step.target))) return false;
      }
  return true;
}

Rank position_of(Rank rank, std::span<const Rank> order) {
  return {static_cast<std::int32_t>(std::ranges::find(order, rank) - order.begin())};
}

Rank at_position(std::int32_t position, std::span<const Rank> order) { return order[static_cast<std::size_t>(position)]; }

// Positions become ranks, as peers and, where data are blocks, as owners of these.
class Renaming {
 public:
  Renaming(const Plan& plan, std::span<const Rank> order)
      : order_(order), chunks_(plan.chunks), blocks_(in_blocks(plan.collective)) {}

  void rename(Lane& lane) const {
    if (blocks_) unroll(lane);
    for (Loop& loop : lane.loops)
      for (Step& step : loop.steps) {
        if (sends(step.op)) rename(step.to);
        if (receives(step.op)) rename(step.from);
        if (!blocks_) continue;
        rename(step.source);
        rename(step.target);
      }
  }

 private:
  // Any order is no progression: indices stop moving with their loop, which becomes as many steps as it took.
  static void unroll(Lane& lane) {
    Loop all;
    for_each_step(lane, [&](Step step, std::int32_t i) {
      step.source.index = fixed(step.source.index.at(i));
      step.target.index = fixed(step.target.index.at(i));
      all.steps.push_back(step);
    });
    lane.loops = {std::move(all)};
  }
  void rename(Rotating& peer) const { peer = fixed(at_position(peer.at(0), order_)); }
  void rename(Chunk& chunk) const {
    if (chunk.buffer == Buffer::none) return;
    const std::int32_t c = chunk.index.at(0);
    chunk.index = fixed(at_position(c / chunks_, order_).value * chunks_ + c % chunks_);
  }

  std::span<const Rank> order_;
  std::int32_t chunks_;
  bool blocks_;
};

}  // namespace

bool can_be_placed(std::span<const Plan> plans) {
  return !plans.empty() && std::ranges::all_of(plans, [](const Plan& plan) { return can_be_placed(plan); });
}

Plan build_placed(const Build& build, const Request& request, std::span<const Rank> order) {
  if (order.empty()) return build(request);
  Request at = request;
  if (has_root(request.collective)) at.root = position_of(request.root, order);
  std::vector<Plan> plans;
  for (at.rank = {0}; at.rank.value < request.world.value; ++at.rank.value) plans.push_back(build(at));
  if (!can_be_placed(plans)) return build(request);
  Plan plan = std::move(plans[static_cast<std::size_t>(position_of(request.rank, order).value)]);
  plan.rank = request.rank;
  plan.root = request.root;
  const Renaming renaming(plan, order);
  for (Lane& lane : plan.lanes) renaming.rename(lane);
  return plan;
}

}  // namespace shoal::plan
