// SPDX-License-Identifier: Apache-2.0
// Arguments that several commands take, and the questions about them. One thread; the targets belong to the caller.
#pragma once

#include <optional>
#include <string>

#include "algorithms/algorithms.h"
#include "core/status.h"
#include "plan/subject.h"
#include "tools/cli/command_line.h"
#include "tools/plan/commands.h"

namespace shoal::plan_tool {

inline constexpr std::int32_t kMostRanks = 1 << 20;

// Which plans a command is about.
struct Target {
  std::optional<plan::Collective> collective;
  std::string algorithm;
  std::int32_t world = 8;
  std::int32_t root = 0;
  std::int32_t group = -1;  // -1: not given

  plan::Request request() const {
    return {.collective = *collective, .world = {world}, .rank = {}, .root = {root}, .group = group < 0 ? 0 : group};
  }
};

cli::CommandLine command_line(const std::string& name, const std::string& description, const std::string& usage);
void take_collective(cli::CommandLine& line, Target& target);
void take_algorithm(cli::CommandLine& line, Target& target);
void take_world(cli::CommandLine& line, Target& target);  // --world, --root, --group

// Nothing if the command goes on; else how it ended, help being printed.
std::optional<Ending> parse(cli::CommandLine& line, const Words& words);

// Ok, or what is missing or does not fit: a collective, and a root and a group that the world has.
Status complete(const Target& target);
// "--algorithm nosuch: all_reduce has ring, tree, ..."
Result<const algorithms::Algorithm*> algorithm_of(const Target& target);

// All ranks' plans; fails if the algorithm refuses.
Result<std::vector<plan::Plan>> plans_of(const algorithms::Algorithm& algorithm, const plan::Request& request);
plan::Subject subject_of(const algorithms::Algorithm& algorithm);

inline Ending usage(const Status& status) { return {kUsage, std::string(status.text())}; }

// Writes a file as a whole.
Status write_file(const std::string& path, const std::string& text);

}  // namespace shoal::plan_tool
