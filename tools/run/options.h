// SPDX-License-Identifier: Apache-2.0
// shoal-run's command line as a value.
#pragma once

#include <string>
#include <vector>

#include "tools/cli/command_line.h"

namespace shoal::run {

enum class Labels {
  all,
  others,
  none
};                                  // which ranks' lines carry "[rank] "; others: all but rank 0, so that a table stays a table
enum class Binding { none, core };  // core: rank i on the allowed core i mod cores

struct Options {
  int ranks = 0;
  double timeout_s = 0;  // 0: none
  Labels labels = Labels::others;
  Binding binding = Binding::none;
  std::vector<std::string> command;  // program and its arguments
};

constexpr int kMaxRanks = 4096;  // of one launcher on one machine
constexpr int kRefused = 2;      // exit code for a command line that is refused

// Fills `options` from the arguments after the program's name. Everything from the first word that is no option, or after
// "--", is the command.
cli::Outcome parse_options(const std::vector<std::string>& arguments, Options& options);

}  // namespace shoal::run
