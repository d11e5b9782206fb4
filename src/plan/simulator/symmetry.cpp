// SPDX-License-Identifier: Apache-2.0
#include "plan/simulator/symmetry.h"

#include <algorithm>
#include <cmath>

namespace shoal::plan {
namespace {

// Whether b(i) = a(i) + shift modulo the world, 0 <= i < iterations.
bool moved(const Rotating& a, const Rotating& b, std::int32_t shift, std::int32_t world, std::int32_t iterations) {
  const auto same = [&](std::int32_t i) { return (a.at(i) + shift) % world == b.at(i); };
  if (a.stride == 0 || b.stride == 0 || iterations == 1)
    return a.stride == 0 && b.stride == 0 ? same(0) : iterations == 1 && same(0);
  const auto whole_world = [&](const Rotating& x) { return x.modulus == world && x.scale == 1 && x.base == 0; };
  return whole_world(a) && whole_world(b) && a.stride == b.stride && same(0);
}

// Chunk numbers turn with the ranks, and all chunks are equally long.
bool alike(const Chunk& a, const Chunk& b) { return a.buffer == b.buffer && a.size == b.size; }

bool is_shifted(const Step& a, const Step& b, std::int32_t shift, std::int32_t world, std::int32_t iterations) {
  if (a.op != b.op || !alike(a.source, b.source) || !alike(a.target, b.target)) return false;
  if ((receives(a.op) || a.op == Op::copy_shared) && !moved(a.from, b.from, shift, world, iterations)) return false;
  return !sends(a.op) || moved(a.to, b.to, shift, world, iterations);
}

// `of` numbers what a rank uses. Whether ranks that share one still share one after moving, and, if it is queued for, whether all
// of them are among `period` neighbours: then the same ranks modulo the period queue for it everywhere, in the same order.
template <typename Of>
bool keeps(const std::vector<Place>& places, std::int32_t period, bool queued_for, Of of) {
  const std::size_t world = places.size(), g = static_cast<std::size_t>(period);
  std::int32_t most = 0;
  for (const Place& place : places) most = std::max(most, of(place));
  std::vector<std::int32_t> image(static_cast<std::size_t>(most) + 1, -1), origin(image);
  for (std::size_t r = 0; r < world; ++r) {
    const std::int32_t a = of(places[r]), b = of(places[(r + g) % world]);
    std::int32_t &to = image[static_cast<std::size_t>(a)], &from = origin[static_cast<std::size_t>(b)];
    if ((to >= 0 && to != b) || (from >= 0 && from != a)) return false;
    to = b;
    from = a;
  }
  if (!queued_for) return true;
  std::vector<std::int32_t> block(static_cast<std::size_t>(most) + 1, -1);
  for (std::size_t r = 0; r < world; ++r) {
    std::int32_t& users = block[static_cast<std::size_t>(of(places[r]))];
    const std::int32_t here = static_cast<std::int32_t>(r / g);
    if (users >= 0 && users != here) return false;
    users = here;
  }
  return true;
}

}  // namespace

bool is_shifted(const Plan& plan, const Plan& other, std::int32_t shift) {
  if (plan.shared != 0 || plan.chunks != other.chunks || plan.credits != other.credits || plan.lanes.size() != other.lanes.size())
    return false;
  for (std::size_t l = 0; l < plan.lanes.size(); ++l) {
    const Lane &a = plan.lanes[l], &b = other.lanes[l];
    if (a.channel != b.channel || a.loops.size() != b.loops.size()) return false;
    for (std::size_t k = 0; k < a.loops.size(); ++k) {
      const Loop &x = a.loops[k], &y = b.loops[k];
      if (x.iterations != y.iterations || x.steps.size() != y.steps.size()) return false;
      for (std::size_t s = 0; s < x.steps.size(); ++s)
        if (!is_shifted(x.steps[s], y.steps[s], shift, plan.world.value, x.iterations)) return false;
    }
  }
  return true;
}

bool looks_the_same(const Cluster& cluster, const std::vector<Place>& places, std::int32_t period) {
  const auto differ = [&](auto of) {
    return std::any_of(places.begin(), places.end(), [&](const Place& place) { return of(place) != of(places[0]); });
  };
  const bool several_hosts = differ([](const Place& p) { return p.host; });
  const bool several_leaves = differ([](const Place& p) { return p.leaf; });
  const bool bus = cluster.within.through == Within::bus;
  if (!keeps(places, period, bus, [](const Place& p) { return p.host; })) return false;
  if (several_hosts && !keeps(places, period, true, [](const Place& p) { return p.nic; })) return false;
  if (several_leaves && !keeps(places, period, std::isfinite(cluster.leaves.uplink_Bps), [](const Place& p) { return p.leaf; }))
    return false;
  return keeps(places, period, cluster.cores_per_host != 0, [](const Place& p) { return p.core; });
}

std::int32_t rotation_period(std::span<const Plan> plans, const Cluster& cluster, const std::vector<Place>& places) {
  const std::int32_t world = static_cast<std::int32_t>(plans.size());
  const auto plan = [&](std::int32_t r) -> const Plan& { return plans[static_cast<std::size_t>(r)]; };
  for (std::int32_t period = 1; period < world; ++period) {
    if (world % period != 0 || !looks_the_same(cluster, places, period)) continue;
    std::int32_t r = period;
    while (r < world && is_shifted(plan(r % period), plan(r), r - r % period)) ++r;
    if (r == world) return period;
  }
  return world;
}

std::int32_t rotation_period(World world, const PlanOf& plan_of, const Cluster& cluster, const std::vector<Place>& places) {
  for (std::int32_t period = 1; period < world.value; ++period) {
    if (world.value % period != 0 || !looks_the_same(cluster, places, period)) continue;
    std::vector<Plan> first;
    bool all = true;
    for (std::int32_t r = 0; r < world.value && all; ++r) {
      // The one above rank 0 first: what is not symmetric mostly shows there, before many plans are built.
      if (r == 0) all = is_shifted(plan_of({0}), plan_of({period}), period);
      Plan plan = plan_of({r});
      if (r < period)
        first.push_back(std::move(plan));
      else if (all)
        all = is_shifted(first[static_cast<std::size_t>(r % period)], plan, r - r % period);
    }
    if (all) return period;
  }
  return world.value;
}

}  // namespace shoal::plan
