// SPDX-License-Identifier: Apache-2.0
// shoal-plan: looks at the plans of collectives, proves them, prices them and compares them.
#include <fmt/format.h>

#include <cstdio>
#include <string_view>

#include "tools/plan/commands.h"

namespace {

using namespace shoal::plan_tool;

struct Command {
  std::string_view name, summary;
  Ending (*run)(const Words& words);
};

constexpr Command kCommands[] = {
    {"list", "the algorithms, and what their plans are like", list},
    {"show", "the plan of each rank as text, or as a picture", show},
    {"check", "proves plans: one set, or the whole table", check},
    {"simulate", "how long a collective takes on a cluster, and why", simulate},
    {"compare", "predicted times of algorithms side by side; the course's table", compare},
    {"explain", "which algorithm wins a call, and why the others do not", explain},
    {"desync", "who is where, and who is to blame, from the ranks' dumps", desync},
};

std::string help() {
  std::string text =
      "shoal-plan: looks at the plans of collectives, proves them, prices them and compares them.\n"
      "Usage: shoal-plan COMMAND [ARGUMENTS]    (shoal-plan COMMAND --help for its arguments)\n\nCommands:\n";
  for (const Command& each : kCommands) text += fmt::format("  {:10} {}\n", each.name, each.summary);
  return text +
         "\nExamples:\n"
         "  shoal-plan show all_reduce --algorithm ring --world 4 --svg ring.svg\n"
         "  shoal-plan simulate all_reduce --algorithm ring --world 16384 --bytes 1G\n"
         "  shoal-plan compare all_reduce --world 64 --sizes 1K:1G:4\n"
         "  shoal-plan check --all\n"
         "  shoal-plan desync dump.0 dump.1 dump.2\n\nExit codes: 0 success, 1 a check failed, 2 a bad argument.\n";
}

Ending run(const Words& words) {
  if (words.empty()) return {kUsage, "no command: list, show, check, simulate, compare, explain or desync"};
  if (words[0] == "-h" || words[0] == "--help") {
    std::fputs(help().c_str(), stdout);
    return {};
  }
  for (const Command& each : kCommands)
    if (each.name == words[0]) return each.run({words.begin() + 1, words.end()});
  return {kUsage, words[0] + ": is no command: list, show, check, simulate, compare, explain or desync"};
}

}  // namespace

int main(int argc, char** argv) {
  Ending ending = run({argv + 1, argv + argc});
  if (ending.code == 0 && std::fflush(stdout) != 0) ending = {kFailed, "standard output: could not be written"};
  if (!ending.error.empty()) std::fprintf(stderr, "shoal-plan: %s\n", ending.error.c_str());
  return ending.code;
}
