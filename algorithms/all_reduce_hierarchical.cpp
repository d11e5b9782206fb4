// SPDX-License-Identifier: Apache-2.0
// All-reduce in two levels: within groups of ranks that are close (a host), and across them.
//
// Idea: a reduce-scatter within the group leaves each of its g ranks with a share of n/g; ranks of equal place in all m groups
// reduce that share among themselves; an all-gather within the group brings the shares together. For two groups of two:
//
//            within              across                within
//   rank 0   0+1 of first half   all of first half     all
//   rank 1   0+1 of second       all of second         all
//   rank 2   2+3 of first        all of first          all
//   rank 3   2+3 of second       all of second         all
//
// Cost: rings within: 2(g-1) rounds, 2(g-1)/g n bytes sent a rank; across: 2(m-1) rounds of a ring, or 2 log2 m of halving and
// doubling, and 2(m-1)/m n/g bytes: 1/g of the vector on the slow links. Wins on several hosts. Without known groups, the most
// balanced.
#include <algorithm>

#include "algorithms/algorithms.h"
#include "algorithms/patterns/groups.h"
#include "plan/compose.h"

namespace shoal::algorithms {

using namespace plan;

namespace {

Plan in_two_levels(const Request& request, Plan (*across)(const Request&)) {
  const std::int32_t p = request.world.value;
  const std::int32_t g = request.group != 0 ? request.group : balanced_group(request.world);
  if (p % g != 0) return {.refusal = "the ranks are not in equal groups"};
  const std::int32_t m = p / g, group = request.rank.value / g, local = request.rank.value % g;

  Plan plan = across({.world = {m}, .rank = {group}});
  const std::int32_t width = plan.chunks;  // a share is cut into as many chunks as the groups need
  const Place share{.rank_base = local, .rank_scale = g, .chunk_base = local * width};
  Lane lane = embed(plan.lanes[0], share);
  if (g > 1) {
    const Request inside{.world = {g}, .rank = {local}};
    const Plan scatter = reduce_scatter_ring(inside), gather = all_gather_ring(inside);
    Place own_group{.rank_base = group * g, .width = width, .finishes = m == 1};
    Place summed = share;
    summed.input = Buffer::output;
    lane = embed(scatter.lanes[0], own_group);
    if (m > 1) append(lane, embed(plan.lanes[0], summed));
    own_group.input = Buffer::output;
    append(lane, embed(gather.lanes[0], own_group));
    plan.credits = std::max({m > 1 ? plan.credits : 1, scatter.credits, gather.credits});
  }
  plan.chunks = g * width;
  plan.by_reference = true;
  plan.order = Order::any;
  plan.lanes = {std::move(lane)};
  return plan;
}

}  // namespace

Plan all_reduce_hierarchical(const Request& request) { return in_two_levels(request, all_reduce_ring); }

Plan all_reduce_hierarchical_halving(const Request& request) { return in_two_levels(request, all_reduce_halving_doubling); }

}  // namespace shoal::algorithms
