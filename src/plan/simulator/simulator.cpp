// SPDX-License-Identifier: Apache-2.0
#include "plan/simulator/simulator.h"

#include <algorithm>

#include "plan/simulator/bound.h"
#include "plan/simulator/run.h"

namespace shoal::plan {
namespace {

constexpr std::size_t kMaxTracks = 64;          // a rank: the bits of a word
constexpr std::uint64_t kEventsPerMessage = 5;  // a little more than a message takes: two resources, arrival, processor, credit
// A price goes by the slope from this many slices, and on each track this many, to twice as many.
constexpr std::uint64_t kFewSlices = 32;
constexpr std::uint64_t kFewTurns = 8;

Status validate(World world, const Cluster& cluster, const SimulationOptions& o) {
  if (world.value < 1 || world.value >= LinkTable::kMaxRanks)
    return fail(Code::invalid_argument, "a world of {}: 1 to {} ranks", world.value, LinkTable::kMaxRanks - 1);
  if (Status s = validate(cluster); !s.is_ok()) return s;
  if (cluster.ranks() < world.value)
    return fail(Code::invalid_usage, "the cluster {} has {} ranks: the world has {}", cluster.name, cluster.ranks(), world.value);
  if (o.element_bytes == 0 || o.bytes.value % o.element_bytes != 0)
    return fail(Code::invalid_argument, "{} bytes are not whole elements of {} bytes", o.bytes.value, o.element_bytes);
  if (o.in_flight < 1) return fail(Code::invalid_argument, "{} slices in flight: at least 1", o.in_flight);
  if (o.credits < 0) return fail(Code::invalid_argument, "{} credits: 0 (the cluster's) or more", o.credits);
  return {};
}

// Shared slots are in memory that all ranks map.
Status one_host_where_shared(const Plan& plan, World world, const Cluster& cluster) {
  if (plan.shared == 0) return {};
  const std::vector<Place> all = places(cluster, world);
  const auto other = std::find_if(all.begin(), all.end(), [&](const Place& place) { return place.host != all[0].host; });
  if (other == all.end()) return {};
  return fail(Code::invalid_usage, "{} needs all ranks on one host: in the cluster {}, rank {} is on another one than rank 0",
              plan.algorithm, cluster.name, other - all.begin());
}

Status validate(const Plan& plan, World world, const Cluster& cluster, const SimulationOptions& o) {
  if (!plan.refusal.empty())
    return fail(Code::invalid_usage, "{} has no plan for rank {} of {}: {}", plan.algorithm, plan.rank.value, world.value,
                plan.refusal);
  if (plan.world != world)
    return fail(Code::invalid_argument, "{}: a plan for a world of {} among {}", plan.algorithm, plan.world.value, world.value);
  if (plan.lanes.size() * static_cast<std::size_t>(o.in_flight) > kMaxTracks)
    return fail(Code::invalid_argument, "{}: {} lanes with {} slices in flight: at most {} together", plan.algorithm,
                plan.lanes.size(), o.in_flight, kMaxTracks);
  if (channels(plan) * o.in_flight > LinkTable::kMaxChannels)
    return fail(Code::invalid_argument, "{}: {} channels with {} slices in flight: at most {} together", plan.algorithm,
                channels(plan), o.in_flight, LinkTable::kMaxChannels);
  return plan.rank.value == 0 ? one_host_where_shared(plan, world, cluster) : Status();
}

Status validate(std::span<const Plan> plans, const Cluster& cluster, const SimulationOptions& o) {
  const World world{static_cast<std::int32_t>(plans.size())};
  if (Status s = validate(world, cluster, o); !s.is_ok()) return s;
  for (const Plan& plan : plans)
    if (Status s = validate(plan, world, cluster, o); !s.is_ok()) return s;
  return {};
}

// `most_chunks`: of one message of any rank. As the engine cuts.
Slices slices_of(const Plan& plan, std::int32_t most_chunks, const SimulationOptions& o) {
  if (plan.collective == Collective::barrier) return {0, 0, 1};
  const std::uint64_t count = o.bytes.value / o.element_bytes;
  if (plan.shared > 0) {  // two sets of slots, each slot in whole cache lines; all data pass through them
    const std::uint64_t slot = o.window.value / 2 / static_cast<std::uint64_t>(plan.shared);
    return cut(count, o.element_bytes, plan.chunks, 1, o.window.value == 0 ? 0 : std::max<std::uint64_t>(slot / 64 * 64, 64));
  }
  if (plan.collective == Collective::all_to_all_v)  // whose ends do not know how long other blocks are
    return cut_exactly(count, o.element_bytes, plan.chunks, most_chunks, o.slice.value);
  return cut(count, o.element_bytes, plan.chunks, most_chunks, o.slice.value);
}

Slices slices_of(std::span<const Plan> plans, const SimulationOptions& o) {
  std::int32_t most_chunks = 0;
  for (const Plan& plan : plans) most_chunks = std::max(most_chunks, widest(plan));
  return slices_of(plans[0], most_chunks, o);
}

Slices slices_of(const Plan& first, World world, const PlanOf& plan_of, const SimulationOptions& o) {
  std::int32_t most_chunks = 0;
  for (std::int32_t r = 0; r < (o.slice.value == 0 ? 0 : world.value); ++r)
    most_chunks = std::max(most_chunks, widest(plan_of({r})));
  return slices_of(first, most_chunks, o);
}

// Whether all chunks of a slice are equally long, so that it does not matter which one a rank sends.
bool even(const Slices& slices, const Plan& plan) {
  return slices.slices == 0 || (Lengths(slices.length(0), plan.chunks).all_equal() &&
                                Lengths(slices.length(slices.slices - 1), plan.chunks).all_equal());
}

// The first ranks' plans, as many as it takes by symmetry.
std::span<const Plan> some_for_all(std::span<const Plan> plans, const Cluster& cluster, const SimulationOptions& o,
                                   const Slices& slices) {
  if (!o.symmetry || !even(slices, plans[0])) return plans;
  const World world{static_cast<std::int32_t>(plans.size())};
  return plans.first(static_cast<std::size_t>(rotation_period(plans, cluster, places(cluster, world))));
}

std::uint64_t messages_sent(const Plan& plan) {
  std::uint64_t sent = 0;
  for (const Lane& lane : plan.lanes)
    for (const Loop& loop : lane.loops)
      for (const Step& step : loop.steps) sent += sends(step.op) ? static_cast<std::uint64_t>(loop.iterations) : 0;
  return sent;
}

Status within_budget(std::span<const Plan> plans, World world, const SimulationOptions& o, const Slices& slices) {
  std::uint64_t messages = 0;
  for (const Plan& plan : plans) messages += messages_sent(plan) * slices.slices;
  if (messages <= o.max_events / kEventsPerMessage) return {};
  const bool uneven = o.symmetry && !Lengths(slices.length(slices.slices - 1), plans[0].chunks).all_equal();
  return fail(
      Code::invalid_usage,
      "{} in a world of {}: {} messages, about {} events, which is above the budget of {} (--max-events); fewer or longer "
      "slices, or a smaller world, take less{}",
      plans[0].algorithm, world.value, messages, messages * kEventsPerMessage, o.max_events,
      uneven ? fmt::format("; rotation symmetry is used only where the elements divide by {} chunks", plans[0].chunks) : "");
}

Result<Simulation> simulate_some(std::span<const Plan> plans, World world, const Cluster& cluster,
                                 const SimulationOptions& options, const Slices& slices) {
  if (Status s = within_budget(plans, world, options, slices); !s.is_ok()) return s;
  Run run(plans, world, cluster, options, slices);
  if (Status s = run.run(); !s.is_ok()) return s;
  Simulation simulation = run.result();
  simulation.bound_s = lower_bound(plans[0].collective, world, static_cast<double>(options.bytes.value), cluster);
  return simulation;
}

}  // namespace

Result<Simulation> simulate(World world, const PlanOf& plan_of, const Cluster& cluster, const SimulationOptions& options) {
  if (Status s = validate(world, cluster, options); !s.is_ok()) return s;
  const Plan first = plan_of({0});
  if (Status s = validate(first, world, cluster, options); !s.is_ok()) return s;
  const Slices slices = slices_of(first, world, plan_of, options);
  std::int32_t period = world.value;
  if (options.symmetry && even(slices, first)) period = rotation_period(world, plan_of, cluster, places(cluster, world));
  std::vector<Plan> plans;
  plans.reserve(static_cast<std::size_t>(period));
  for (std::int32_t r = 0; r < period; ++r) {
    plans.push_back(plan_of({r}));
    if (Status s = validate(plans.back(), world, cluster, options); !s.is_ok()) return s;
  }
  return simulate_some(plans, world, cluster, options, slices);
}

Result<Simulation> simulate(std::span<const Plan> plans, const Cluster& cluster, const SimulationOptions& options) {
  if (Status s = validate(plans, cluster, options); !s.is_ok()) return s;
  const World world{static_cast<std::int32_t>(plans.size())};
  const Slices slices = slices_of(plans, options);
  return simulate_some(some_for_all(plans, cluster, options, slices), world, cluster, options, slices);
}

Result<double> price(std::span<const Plan> plans, const Cluster& cluster, const SimulationOptions& options) {
  if (Status s = validate(plans, cluster, options); !s.is_ok()) return s;
  const World world{static_cast<std::int32_t>(plans.size())};
  const Slices all = slices_of(plans, options);
  const std::span<const Plan> some = some_for_all(plans, cluster, options, all);
  SimulationOptions without_path = options;
  without_path.path_steps = 0;
  const auto time = [&](const Slices& slices) -> Result<double> {
    if (Status s = within_budget(some, world, without_path, slices); !s.is_ok()) return s;
    Run run(some, world, cluster, without_path, slices);
    if (Status s = run.run(); !s.is_ok()) return s;
    return run.time_s();
  };

  // A multiple of the slices in flight, so that both ends of the slope are at the same point of the tracks' turns.
  const std::uint64_t turns = static_cast<std::uint64_t>(options.in_flight);
  const std::uint64_t few = std::max((kFewSlices + turns - 1) / turns, kFewTurns) * turns;
  if (all.slices <= 2 * few) return time(all);
  const auto first = [&](std::uint64_t n) { return Slices{n * all.slice, all.slice, n}; };
  const Result<double> near = time(first(few)), far = time(first(2 * few));
  if (!near.is_ok()) return near.status();
  if (!far.is_ok()) return far.status();
  const double slices = static_cast<double>(all.count) / static_cast<double>(all.slice);
  return *far + (slices - 2 * static_cast<double>(few)) * (*far - *near) / static_cast<double>(few);
}

}  // namespace shoal::plan
