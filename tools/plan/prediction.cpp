// SPDX-License-Identifier: Apache-2.0
#include "tools/plan/prediction.h"

#include <algorithm>

#include "plan/simulator/cluster_file.h"

namespace shoal::plan_tool {

using namespace plan;

namespace {

constexpr std::int32_t kAtOnce = 256;  // up to this world all plans are held

SimulationOptions options_of(const Machine& machine, SimulationOptions options, std::uint64_t bytes, std::uint64_t slice,
                             std::uint64_t max_events) {
  options.bytes = {bytes};
  options.element_bytes = kElementBytes;
  options.slice = {slice};
  options.in_flight = machine.in_flight;
  options.max_events = max_events;
  return options;
}

// Slices as they were asked for; else the library's and, where that fails for its number of events, whole ones.
template <typename F>
auto in_slices(const Machine& machine, F&& run) {
  if (machine.slice_given) return run(machine.slice, machine.max_events);
  auto sliced = run(kLibrarySlice, std::min(machine.auto_events, machine.max_events));
  if (sliced.is_ok()) return sliced;
  return run(0, machine.max_events);
}

}  // namespace

void take_machine(cli::CommandLine& line, Machine& machine) {
  std::string names;
  for (const Preset& each : presets()) names += fmt::format("{}{}", names.empty() ? "" : ", ", each.name);
  line.value("--cluster", fmt::format("Where it runs: {}, or a file's path", names), "NAME", [&machine](const std::string& text) {
    machine.cluster = text;
    return text.empty() ? "names no cluster" : "";
  });
  line.value("--slice", "Most bytes of a message: a size, whole, or auto (64K, whole where that is too many events)", "SIZE",
             [&machine](const std::string& text) {
               machine.slice_given = text != "auto";
               machine.slice = text == "auto" ? kLibrarySlice : 0;
               if (text == "auto" || text == "whole") return std::string();
               const auto parsed = cli::parse_size(text);
               if (parsed.is_ok()) machine.slice = *parsed;
               return parsed.is_ok() && *parsed == 0 ? "must be at least 1, or whole" : parsed.why();
             });
  line.integer("--in-flight", machine.in_flight, 1, "Slices that a lane works on at a time", 16);
  line.integer("--max-events", machine.max_events, 1, "Give up above this many events", std::int64_t{1} << 40);
}

Result<Cluster> cluster_of(const Machine& machine, Target& target) {
  Result<Cluster> cluster = cluster_from(machine.cluster, {target.world});
  if (!cluster.is_ok()) return fail(cluster.status().code(), "--cluster {}: {}", machine.cluster, cluster.status().text());
  const std::int32_t full = std::min(cluster->ranks_per_host, target.world);
  if (target.group < 0 && cluster->host_of_rank.empty() && full > 1 && target.world % full == 0) target.group = full;
  return cluster;
}

Result<std::uint64_t> simulator_bytes(Collective collective, std::int32_t world, std::uint64_t bytes) {
  if (collective == Collective::barrier) return std::uint64_t{0};
  if (bytes % kElementBytes != 0)
    return fail(Code::invalid_argument, "--bytes {}: not whole elements of {} bytes", bytes, kElementBytes);
  if (!in_blocks(collective)) return bytes;
  const std::uint64_t block = bytes / kElementBytes / static_cast<std::uint64_t>(world) * kElementBytes;
  if (block == 0 && bytes != 0)
    return fail(Code::invalid_argument, "--bytes {}: less than an element for each of {} blocks; {} is the least", bytes, world,
                kElementBytes * static_cast<std::uint64_t>(world));
  return block;
}

double bus_factor(Collective collective, std::int32_t world) {
  const double others = static_cast<double>(world - 1) / world;
  if (collective == Collective::all_reduce) return 2 * others;
  return in_blocks(collective) ? others : 1;
}

Result<Prediction> predict(const algorithms::Algorithm& algorithm, const Request& request, std::uint64_t bytes,
                           const Cluster& cluster, const Machine& machine, SimulationOptions options) {
  const auto plan_of = [&](Rank rank) {
    Request of_rank = request;
    of_rank.rank = rank;
    return algorithm.build(of_rank);
  };
  return in_slices(machine, [&](std::uint64_t slice, std::uint64_t max_events) -> Result<Prediction> {
    auto run = plan::simulate(request.world, plan_of, cluster, options_of(machine, options, bytes, slice, max_events));
    if (!run.is_ok()) return run.status();
    return Prediction{run.take(), slice};
  });
}

Result<double> predict_time(const algorithms::Algorithm& algorithm, const Request& request, std::uint64_t bytes,
                            const Cluster& cluster, const Machine& machine) {
  const SimulationOptions no_extras{.top = 0, .path_steps = 0};
  if (request.world.value > kAtOnce) {
    auto run = predict(algorithm, request, bytes, cluster, machine, no_extras);
    if (!run.is_ok()) return run.status();
    return run->simulation.time_s;
  }
  const auto plans = plans_of(algorithm, request);
  if (!plans.is_ok()) return plans.status();
  return in_slices(machine, [&](std::uint64_t slice, std::uint64_t max_events) -> Result<double> {
    return price(*plans, cluster, options_of(machine, no_extras, bytes, slice, max_events));
  });
}

}  // namespace shoal::plan_tool
