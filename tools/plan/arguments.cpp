// SPDX-License-Identifier: Apache-2.0
#include "tools/plan/arguments.h"

#include <cerrno>
#include <cstdio>
#include <fstream>

namespace shoal::plan_tool {

using plan::Collective;

namespace {

std::string collective_names() {
  std::string names;
  for (int c = 0; c < plan::kCollectives; ++c)
    names += fmt::format("{}{}", c == 0 ? "" : ", ", plan::name_of(static_cast<Collective>(c)));
  return names;
}

}  // namespace

cli::CommandLine command_line(const std::string& name, const std::string& description, const std::string& usage) {
  return {fmt::format("shoal-plan {}: {}", name, description), fmt::format("shoal-plan {} {}", name, usage), kUsage};
}

void take_collective(cli::CommandLine& line, Target& target) {
  line.value("COLLECTIVE", "Which one: " + collective_names(), "", [&target](const std::string& text) {
    target.collective = plan::collective_from(text);
    return target.collective ? std::string() : "is no collective: " + collective_names();
  });
}

void take_algorithm(cli::CommandLine& line, Target& target) {
  line.value("-a,--algorithm", "Its name in shoal-plan list", "NAME", [&target](const std::string& text) {
    target.algorithm = text;
    return std::string();
  });
}

void take_world(cli::CommandLine& line, Target& target) {
  line.integer("-n,--world", target.world, 1, "Ranks", kMostRanks);
  line.integer("--root", target.root, 0, "Root of broadcast, reduce, gather and scatter");
  line.integer("--group", target.group, 0, "Ranks r with equal r / N are close to each other (one host); 0: nothing is known");
}

std::optional<Ending> parse(cli::CommandLine& line, const Words& words) {
  const cli::Outcome outcome = line.parse(words);
  if (outcome.proceed) return {};
  if (!outcome.is_help) return Ending{outcome.exit_code, outcome.text};
  std::fputs(outcome.text.c_str(), stdout);
  return Ending{};
}

Status complete(const Target& target) {
  if (!target.collective) return fail(Code::invalid_argument, "COLLECTIVE is missing: one of {}", collective_names());
  if (target.root >= target.world)
    return fail(Code::invalid_argument, "--root {}: a world of {} has ranks 0 to {}", target.root, target.world,
                target.world - 1);
  if (target.root != 0 && !plan::has_root(*target.collective))
    return fail(Code::invalid_argument, "--root {}: {} has no root", target.root, plan::name_of(*target.collective));
  if (target.group > 0 && target.world % target.group != 0)
    return fail(Code::invalid_argument, "--group {}: does not divide the world of {}", target.group, target.world);
  return {};
}

Result<const algorithms::Algorithm*> algorithm_of(const Target& target) {
  if (const algorithms::Algorithm* found = algorithms::find(*target.collective, target.algorithm)) return found;
  std::string names;
  for (const algorithms::Algorithm& each : algorithms::all())
    if (each.collective == *target.collective) names += fmt::format("{}{}", names.empty() ? "" : ", ", each.name);
  const std::string_view collective = plan::name_of(*target.collective);
  if (target.algorithm.empty()) return fail(Code::invalid_argument, "--algorithm is missing: {} has {}", collective, names);
  return fail(Code::invalid_argument, "--algorithm {}: {} has {}", target.algorithm, collective, names);
}

Result<std::vector<plan::Plan>> plans_of(const algorithms::Algorithm& algorithm, const plan::Request& request) {
  std::vector<plan::Plan> plans;
  for (plan::Request each = request; each.rank.value < request.world.value; ++each.rank.value) {
    plans.push_back(algorithm.build(each));
    if (!plans.back().refusal.empty())
      return fail(Code::invalid_usage, "{} has no plan for {} rank{}{}: {}", algorithm.name, request.world.value,
                  request.world.value == 1 ? "" : "s", request.group > 0 ? fmt::format(" in groups of {}", request.group) : "",
                  plans.back().refusal);
  }
  return plans;
}

plan::Subject subject_of(const algorithms::Algorithm& algorithm) {
  return {algorithm.name, algorithm.collective, [&algorithm](const plan::Request& request) { return algorithm.build(request); }};
}

Status write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text << std::flush;
  return file ? Status() : fail(Code::system_error, "{}: {}", path, errno_text(errno));
}

}  // namespace shoal::plan_tool
