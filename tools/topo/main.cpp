// SPDX-License-Identifier: Apache-2.0
// shoal-topo: what a host is made of, and what that means for a job.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tools/topo/commands.h"

namespace {

using namespace shoal::topo_tool;

struct Command {
  std::string_view name, summary;
  Ending (*run)(const Words& words);
};

constexpr Command kCommands[] = {
    {"show", "this machine, or a file's, as a tree, picture, JSON or NCCL's XML (also without a command)", show},
    {"check", "what is likely to hurt a job here, and the remedy", check},
    {"diff", "in what two hosts differ", diff},
    {"bound", "the least time of each collective over a job's links, and how near plans come", bound},
    {"measure", "latency and bandwidth between all ranks of a job, and the best ring", measure},
    {"ranks", "who of a job sits where, over what each pair talks, and why (also --ranks)", ranks},
};

std::string help() {
  std::string text =
      "shoal-topo: what a host is made of, and what that means for a job.\n"
      "Usage: shoal-topo [COMMAND] [ARGUMENTS]    (shoal-topo COMMAND --help for its arguments)\n\nCommands:\n";
  for (const Command& each : kCommands) text += fmt::format("  {:8} {}\n", each.name, each.summary);
  return text +
         "\nExamples:\n"
         "  shoal-topo --svg host.svg\n"
         "  shoal-topo show /etc/nccl/topology.xml\n"
         "  shoal-topo check --ranks 8\n"
         "  shoal-topo bound gpu-node.json --hosts 4\n"
         "  shoal-run -n 4 shoal-topo measure --svg links.svg\n"
         "  shoal-topo --json > before.json; shoal-topo diff before.json\n"
         "\nWhere NCCL_TOPO_FILE is set, its file is taken for this machine, as the library does; ranks and measure look at the "
         "job.\n"
         "\nExit codes: 0 success, 1 advice or differences, 2 a bad argument or file.\n";
}

Ending run(const Words& words) {
  if (!words.empty() && (words[0] == "-h" || words[0] == "--help")) {
    std::fputs(help().c_str(), stdout);
    return {};
  }
  if (!words.empty() && words[0] == "--ranks") return ranks({words.begin() + 1, words.end()});
  if (words.empty() || words[0].starts_with('-')) return show(words);
  std::string names;
  for (const Command& each : kCommands) {
    if (each.name == words[0]) return each.run({words.begin() + 1, words.end()});
    names += fmt::format("{}{}", names.empty() ? "" : ", ", each.name);
  }
  return {kUsage, fmt::format("{}: is no command: {}", words[0], names)};
}

}  // namespace

int main(int argc, char** argv) {
  ::setenv("HWLOC_HIDE_ERRORS", "2", 0);  // of files that are missing: what is unknown is shown as such
  Ending ending = run({argv + 1, argv + argc});
  if (std::fflush(stdout) != 0) ending = {kFound, "standard output: could not be written"};
  if (!ending.error.empty()) std::fprintf(stderr, "shoal-topo: %s\n", ending.error.c_str());
  return ending.code;
}
