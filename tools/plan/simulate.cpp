// SPDX-License-Identifier: Apache-2.0
// shoal-plan simulate: one call on a cluster, how long it takes and what it waits for.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/plan/prediction.h"
#include "tools/plan/units.h"

namespace shoal::plan_tool {
namespace {

using nlohmann::ordered_json;
using namespace plan;

struct Report {
  Target target;
  std::uint64_t bytes = 0;  // of the call
  std::uint64_t block = 0;  // as the simulator counts
  std::string cluster;
  Machine machine;
  Prediction prediction;

  // Bytes that the call really moves: blocks are whole elements.
  double moved() const {
    return static_cast<double>(block) * (in_blocks(*target.collective) ? static_cast<double>(target.world) : 1);
  }
  double algbw() const { return prediction.simulation.time_s == 0 ? 0 : moved() / prediction.simulation.time_s; }
  double busbw() const { return algbw() * bus_factor(*target.collective, target.world); }
  double ratio() const {
    return prediction.simulation.bound_s == 0 ? 0 : prediction.simulation.time_s / prediction.simulation.bound_s;
  }
};

std::string_view after_text(PathStep::After after) {
  switch (after) {
    case PathStep::After::start: return "first";
    case PathStep::After::processor: return "after the rank's step before";
    case PathStep::After::message: return "after a message";
    case PathStep::After::credit: return "after room on the link";
  }
  return "";
}

std::string symmetry_text(const Simulation& s, std::int32_t world) {
  if (s.period >= world) return fmt::format("every rank was run: no rotation makes a few stand for all {}", world);
  return fmt::format("{} of {} ranks were run and stand for all: rank r + {} does what rank r does, on like wires", s.period,
                     world, s.period);
}

std::string slices_text(const Report& report) {
  const Simulation& s = report.prediction.simulation;
  std::string text = report.prediction.slice == 0
                         ? "whole: a message is as long as its chunks"
                         : fmt::format("messages of at most {}", bytes_text(static_cast<double>(report.prediction.slice)));
  text += fmt::format(", {} slice{}, {} in flight", grouped(s.slices), s.slices == 1 ? "" : "s", report.machine.in_flight);
  if (!report.machine.slice_given && report.prediction.slice == 0)
    text += fmt::format(" (the library's 64 KiB would take more than {} events)", grouped(report.machine.auto_events));
  return text;
}

void print(const Report& report) {
  const Simulation& s = report.prediction.simulation;
  const Target& t = report.target;
  fmt::print("{} {}, {} ranks on {}", name_of(*t.collective), t.algorithm, t.world, report.cluster);
  if (has_root(*t.collective)) fmt::print(", root {}", t.root);
  if (t.group > 0) fmt::print(", groups of {}", t.group);
  fmt::print("\n\n");
  const auto row = [](std::string_view name, const std::string& text) { fmt::print("{:13} {}\n", name, text); };
  if (in_blocks(*t.collective))
    row("bytes",
        fmt::format("{} in {} blocks of {}", bytes_text(report.moved()), t.world, bytes_text(static_cast<double>(report.block))));
  else if (*t.collective != Collective::barrier)
    row("bytes", bytes_text(static_cast<double>(report.bytes)));
  if (*t.collective != Collective::barrier) row("slices", slices_text(report));
  row("time", seconds_text(s.time_s));
  if (report.moved() > 0) {
    row("algbw", gigabytes_text(report.algbw()));
    row("busbw", fmt::format("{} (algbw x {:.4g})", gigabytes_text(report.busbw()), bus_factor(*t.collective, t.world)));
  }
  row("lower bound",
      fmt::format("{}: the time is {:.2f} times what no algorithm can beat here", seconds_text(s.bound_s), report.ratio()));
  row("rounds", fmt::format("{} messages on the critical path", s.rounds));
  row("messages", fmt::format("{} and {} signals", grouped(s.messages), grouped(s.signals)));
  row("wire bytes", fmt::format("{} in all: {} within hosts, {} through a leaf switch, {} through the spine",
                                bytes_text(static_cast<double>(s.total_bytes)), bytes_text(static_cast<double>(s.bytes[0])),
                                bytes_text(static_cast<double>(s.bytes[1])), bytes_text(static_cast<double>(s.bytes[2]))));
  row("peak rank", fmt::format("{} sent, or received", bytes_text(static_cast<double>(s.peak_node_bytes))));
  row("symmetry", symmetry_text(s, t.world));
  row("events", grouped(s.events));
  if (!s.busiest.empty()) fmt::print("\nbusiest resources\n");
  for (const Fabric::Use& use : s.busiest)
    fmt::print("  {:32} {:>10}  {:>5.1f} % of the time  {}\n", use.name, seconds_text(use.busy_s),
               s.time_s == 0 ? 0 : 100 * use.busy_s / s.time_s, bytes_text(static_cast<double>(use.bytes)));
  if (!s.path.empty()) fmt::print("\ncritical path: the last {} of {} steps\n", s.path.size(), grouped(s.path_length));
  for (const PathStep& step : s.path)
    fmt::print("  {:>9}  rank {:<5} slice {:<5} {}  ({})\n", seconds_text(step.end_s), step.rank.value, step.slice, step.text,
               after_text(step.after));
}

void print_json(const Report& report) {
  const Simulation& s = report.prediction.simulation;
  ordered_json busiest = ordered_json::array(), path = ordered_json::array();
  for (const Fabric::Use& use : s.busiest) busiest.push_back({{"name", use.name}, {"bytes", use.bytes}, {"busy_s", use.busy_s}});
  for (const PathStep& step : s.path)
    path.push_back({{"rank", step.rank.value},
                    {"slice", step.slice},
                    {"start_s", step.start_s},
                    {"end_s", step.end_s},
                    {"after", after_text(step.after)},
                    {"step", step.text}});
  const ordered_json json = {{"collective", name_of(*report.target.collective)},
                             {"algorithm", report.target.algorithm},
                             {"world", report.target.world},
                             {"root", report.target.root},
                             {"group", std::max(report.target.group, 0)},
                             {"cluster", report.cluster},
                             {"bytes", report.moved()},
                             {"slice_bytes", report.prediction.slice},
                             {"slices", s.slices},
                             {"in_flight", report.machine.in_flight},
                             {"time_s", s.time_s},
                             {"algbw_Bps", report.algbw()},
                             {"busbw_Bps", report.busbw()},
                             {"bound_s", s.bound_s},
                             {"ratio", report.ratio()},
                             {"rounds", s.rounds},
                             {"messages", s.messages},
                             {"signals", s.signals},
                             {"total_bytes", s.total_bytes},
                             {"bytes_within", s.bytes[0]},
                             {"bytes_leaf", s.bytes[1]},
                             {"bytes_spine", s.bytes[2]},
                             {"peak_node_bytes", s.peak_node_bytes},
                             {"period", s.period},
                             {"events", s.events},
                             {"busiest", std::move(busiest)},
                             {"path_length", s.path_length},
                             {"path", std::move(path)}};
  fmt::print("{}\n", json.dump(2));
}

}  // namespace

Ending simulate(const Words& words) {
  Report report;
  Target& target = report.target;
  report.bytes = 1 << 20;
  SimulationOptions options{.credits = 0, .path_steps = 0};
  bool path = false, json = false;
  cli::CommandLine line = command_line("simulate", "how long a collective takes on a cluster, and why.",
                                       "COLLECTIVE --algorithm A [--world N] [--bytes SIZE] [OPTIONS]");
  take_collective(line, target);
  take_algorithm(line, target);
  take_world(line, target);
  line.size("-b,--bytes", report.bytes, "Of the vector; or of all blocks of a rank together");
  take_machine(line, report.machine);
  line.integer("--credits", options.credits, 1, "Messages that a link holds; else the cluster's", 1 << 20);
  line.flag("--path", path, "The last steps of the critical path");
  line.flag("--json", json, "As JSON, in seconds and bytes");
  if (const auto ending = parse(line, words)) return *ending;
  if (Status s = complete(target); !s.is_ok()) return usage(s);
  const auto algorithm = algorithm_of(target);
  if (!algorithm.is_ok()) return usage(algorithm.status());
  const auto cluster = cluster_of(report.machine, target);
  if (!cluster.is_ok()) return usage(cluster.status());
  report.cluster = cluster->name;
  const auto bytes = simulator_bytes(*target.collective, target.world, report.bytes);
  if (!bytes.is_ok()) return usage(bytes.status());
  report.block = *bytes;
  if (path) options.path_steps = 32;

  auto prediction = predict(**algorithm, target.request(), report.block, *cluster, report.machine, options);
  if (!prediction.is_ok()) return usage(prediction.status());
  report.prediction = prediction.take();
  json ? print_json(report) : print(report);
  return {};
}

}  // namespace shoal::plan_tool
