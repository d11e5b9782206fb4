// SPDX-License-Identifier: Apache-2.0
#include "tools/run/options.h"

#include <algorithm>
#include <array>

namespace shoal::run {
namespace {

constexpr const char* kExamples = R"(
Each process finds SHOAL_RANK, SHOAL_WORLD_SIZE, SHOAL_LOCAL_RANK, SHOAL_LOCAL_WORLD_SIZE, SHOAL_JOB and SHOAL_SECRET in its
environment. SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 are passed on to all. When a rank fails the others are ended
(SIGTERM, SIGKILL 3 s later); the exit code is that of the first failure, 128 + the signal's number for a signal. Standard
input goes to rank 0 unless it is a terminal.

Examples:
  shoal-run -n 4 shoal-perf all_reduce -b 8 -e 64M -f 2
  shoal-run -n 2 --timeout 60 -- ./my_program --its-option
  shoal-run -n 3 --label sh -c 'echo "I am $SHOAL_RANK of $SHOAL_WORLD_SIZE"')";

// Where the command begins: the launcher's own options end at the first word that is neither an option nor an option's value.
std::size_t command_start(const std::vector<std::string>& arguments) {
  constexpr std::array<std::string_view, 5> kTakeValue = {"-n", "--ranks", "-t", "--timeout", "--bind"};
  std::size_t i = 0;
  while (i < arguments.size()) {
    const std::string& word = arguments[i];
    if (word == "--" || word.size() < 2 || word[0] != '-') break;
    i += std::find(kTakeValue.begin(), kTakeValue.end(), word) != kTakeValue.end() ? 2 : 1;
  }
  return std::min(i, arguments.size());
}

}  // namespace

cli::Outcome parse_options(const std::vector<std::string>& arguments, Options& options) {
  cli::CommandLine line("shoal-run: starts N processes of one job on this machine and labels their output by rank.",
                        "shoal-run -n N [OPTIONS] [--] COMMAND [ARGUMENTS]", kRefused);
  bool label = false, no_label = false;
  line.app().footer(kExamples);
  line.integer("-n,--ranks", options.ranks, 1, "How many processes, 1 to 4096", kMaxRanks);
  line.seconds("-t,--timeout", options.timeout_s, "End all after S seconds, exit code 124 (default 0: never)");
  line.flag("--label", label, "Label the lines of rank 0, too (default: all ranks but 0)");
  line.flag("--no-label", no_label, "Label no lines");
  line.value("--bind", "core: rank i stays on allowed core i mod cores (default none)", "none|core",
             [&](const std::string& text) {
               const auto choice = cli::parse_choice(text, {"none", "core"});
               if (choice.is_ok()) options.binding = *choice == 1 ? Binding::core : Binding::none;
               return choice.why();
             });

  const auto start = static_cast<std::ptrdiff_t>(command_start(arguments));
  const cli::Outcome outcome = line.parse({arguments.begin(), arguments.begin() + start});
  if (!outcome.proceed) return outcome;
  options.command.assign(arguments.begin() + start, arguments.end());
  if (!options.command.empty() && options.command.front() == "--") options.command.erase(options.command.begin());

  const auto refuse = [](std::string why) { return cli::Outcome{false, kRefused, std::move(why), false}; };
  if (!line.given("-n")) return refuse("-n/--ranks is missing: how many processes? (shoal-run --help)");
  if (options.command.empty() || options.command.front().empty()) return refuse("there is no command to run (shoal-run --help)");
  if (label && no_label) return refuse("--label and --no-label exclude each other");
  options.labels = label ? Labels::all : no_label ? Labels::none : Labels::others;
  return {};
}

}  // namespace shoal::run
