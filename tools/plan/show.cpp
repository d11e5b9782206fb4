// SPDX-License-Identifier: Apache-2.0
// shoal-plan show: the plans of a collective as text, or as a picture.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "plan/counters.h"
#include "tools/plan/arguments.h"
#include "tools/plan/picture.h"
#include "tools/plan/program_text.h"
#include "tools/plan/units.h"

namespace shoal::plan_tool {
namespace {

using nlohmann::ordered_json;
using namespace plan;

constexpr std::size_t kMostBoxes = 2500;  // of a picture

std::string title_of(const Target& target) {
  std::string text =
      fmt::format("{} {}, {} rank{}", name_of(*target.collective), target.algorithm, target.world, target.world == 1 ? "" : "s");
  if (has_root(*target.collective)) text += fmt::format(", root {}", target.root);
  if (target.group > 0) text += fmt::format(", groups of {}", target.group);
  return text;
}

// "6 rounds; a rank sends or receives at most 1.5 n, all ranks 6 n (n: the vector)"
std::string cost_of(std::span<const Plan> plans) {
  const bool blocks = in_blocks(plans[0].collective);
  const std::uint64_t unit = static_cast<std::uint64_t>(plans[0].chunks);
  const Result<Counters> counted = count(plans, {unit});
  if (!counted.is_ok()) return "";
  const std::uint64_t n = blocks ? unit * plans.size() : unit;
  const Counters& c = *counted;
  if (c.messages == 0) {
    std::uint64_t read = 0;
    for (const Counters::Node& node : c.nodes) read = std::max(read, node.direct_read);
    std::string text = fmt::format("no messages, {} signals", c.signals);
    if (read > 0) text += fmt::format("; a rank reads {} from the memory of others (n: the vector)", share_text(read, n));
    return text;
  }
  return fmt::format("{} round{}; a rank sends or receives at most {}, all ranks together send {} (n: {})", c.rounds.size(),
                     c.rounds.size() == 1 ? "" : "s", share_text(c.peak_node, n), share_text(c.total, n),
                     blocks ? "all blocks" : "the vector");
}

ordered_json json_of(const Plan& plan) {
  ordered_json lanes = ordered_json::array();
  for (const Lane& lane : plan.lanes) {
    ordered_json loops = ordered_json::array();
    for (const Loop& loop : lane.loops) {
      ordered_json steps = ordered_json::array();
      for (const Step& step : loop.steps) {
        const bool in_loop = loop.iterations > 1;
        ordered_json json = {{"op", name_of(step.op)}};
        if (receives(step.op) || step.op == Op::copy_shared) json["from"] = text_of(step.from, in_loop);
        if (sends(step.op)) json["to"] = text_of(step.to, in_loop);
        if (step.source.buffer != Buffer::none) json["source"] = text_of(step.source, in_loop);
        if (step.target.buffer != Buffer::none) json["target"] = text_of(step.target, in_loop);
        if (step.final) json["final"] = true;
        steps.push_back(std::move(json));
      }
      loops.push_back({{"iterations", loop.iterations}, {"steps", std::move(steps)}});
    }
    lanes.push_back({{"channel", lane.channel}, {"loops", std::move(loops)}});
  }
  return {{"rank", plan.rank.value}, {"scratch", plan.scratch}, {"lanes", std::move(lanes)}};
}

void print_json(const Target& target, std::span<const Plan> plans, std::int32_t only) {
  ordered_json ranks = ordered_json::array();
  for (const Plan& plan : plans)
    if (only < 0 || plan.rank.value == only) ranks.push_back(json_of(plan));
  const ordered_json json = {{"collective", name_of(*target.collective)},
                             {"algorithm", target.algorithm},
                             {"world", target.world},
                             {"root", target.root},
                             {"chunks", plans[0].chunks},
                             {"credits", plans[0].credits},
                             {"shared", plans[0].shared},
                             {"by_reference", plans[0].by_reference},
                             {"pipelined", plans[0].pipelined},
                             {"ranks", std::move(ranks)}};
  fmt::print("{}\n", json.dump(2));
}

void print_text(const Target& target, std::span<const Plan> plans, std::int32_t only) {
  fmt::print("{}: {}\n{}\n", title_of(target), properties(plans[0]), cost_of(plans));
  for (const Plan& plan : plans)
    if (only < 0 || plan.rank.value == only) fmt::print("\nrank {}\n{}", plan.rank.value, program_text(plan));
}

}  // namespace

Ending show(const Words& words) {
  Target target;
  target.world = 4;
  std::int32_t rank = -1;
  std::string svg;
  bool json = false;
  cli::CommandLine line =
      command_line("show", "the plan of each rank, as text or as a picture.", "COLLECTIVE --algorithm A [--world N] [OPTIONS]");
  take_collective(line, target);
  take_algorithm(line, target);
  take_world(line, target);
  line.integer("-r,--rank", rank, 0, "Only this rank's, as text");
  line.value("--svg", "Draws all ranks into this file", "FILE", [&svg](const std::string& text) {
    svg = text;
    return text.empty() ? "names no file" : "";
  });
  line.flag("--json", json, "As JSON");
  if (const auto ending = parse(line, words)) return *ending;
  if (Status s = complete(target); !s.is_ok()) return usage(s);
  if (rank >= target.world)
    return {kUsage, fmt::format("--rank {}: a world of {} has ranks 0 to {}", rank, target.world, target.world - 1)};
  if (target.world > 4096) return {kUsage, fmt::format("--world {}: at most 4096 are shown", target.world)};
  const auto algorithm = algorithm_of(target);
  if (!algorithm.is_ok()) return usage(algorithm.status());
  const auto plans = plans_of(**algorithm, target.request());
  if (!plans.is_ok()) return usage(plans.status());

  if (!svg.empty()) {
    const auto drawn = timeline(*plans, kMostBoxes);
    if (!drawn.is_ok()) return usage(drawn.status());
    if (Status s = write_file(svg, picture(*plans, *drawn, title_of(target), cost_of(*plans))); !s.is_ok())
      return {kFailed, "--svg " + std::string(s.text())};
    return {};
  }
  if (json)
    print_json(target, *plans, rank);
  else
    print_text(target, *plans, rank);
  return {};
}

}  // namespace shoal::plan_tool
