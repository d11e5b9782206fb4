// SPDX-License-Identifier: Apache-2.0
// shoal-train: distributed training on Shoal, using it as any program does. This file parses, runs one subcommand and turns what
// it throws into one line and an exit code.
#include <fmt/core.h>

#include "train/commands/subcommand.h"
#include "train/parallel/comm.h"

namespace {

using namespace shoal::train;

constexpr const char* kFooter =
    "Examples:\n"
    "  shoal-train data --epochs 3                    one process\n"
    "  shoal-run -n 2 shoal-train data --epochs 3     two ranks of this machine\n"
    "  shoal-train data --help                        all options of data-parallel training\n"
    "\n"
    "Exit codes: 0 success; 1 a target or a check was missed; 2 a wrong option or file; 3 communication failed.";

using Adder = Subcommand (*)(CLI::App&);
constexpr Adder kSubcommands[] = {add_data,   add_zero,    add_pipeline, add_tensor,     add_sequence,
                                  add_hybrid, add_delayed, add_search,   add_plan_memory};

// Every rank sees the same command line: one of them speaks. A failure of communication is each rank's own.
int report(const Error& error, Seat seat) {
  if (seat.rank == 0 || error.code() == Exit::communication) fmt::print(stderr, "shoal-train: {}\n", error.what());
  return static_cast<int>(error.code());
}

int parse_failure(const CLI::App& program, const CLI::ParseError& error, Seat seat) {
  if (error.get_exit_code() != 0) return report(Error(Exit::usage, error.what()), seat);
  return seat.rank == 0 ? program.exit(error) : 0;  // --help, --version
}

int run(int argc, char** argv, Seat seat) {
  CLI::App program("Distributed training on Shoal's collectives.", "shoal-train");
  program.footer(kFooter);
  program.require_subcommand(0, 1);  // none is refused below: there an unknown word has already been named
  program.set_version_flag("--version", shoalVersion());
  std::vector<Subcommand> subcommands;
  for (const Adder add : kSubcommands) subcommands.push_back(add(program));

  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return parse_failure(program, error, seat);
  }
  for (const Subcommand& subcommand : subcommands) {
    if (subcommand.app->parsed()) return static_cast<int>(subcommand.run(seat));
  }
  return report(Error(Exit::usage, "no subcommand: try shoal-train data, or shoal-train --help"), seat);
}

}  // namespace

int main(int argc, char** argv) {
  Seat seat;
  try {
    seat = launched_seat();
    return run(argc, argv, seat);
  } catch (const Error& error) {
    return report(error, seat);
  } catch (const std::exception& error) {  // out of memory and the like
    fmt::print(stderr, "shoal-train: rank {}: {}\n", seat.rank, error.what());
    return static_cast<int>(Exit::usage);
  }
}
