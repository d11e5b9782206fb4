// SPDX-License-Identifier: Apache-2.0
// The options that all subcommands that train the transformer share.
#pragma once

#include <CLI/CLI.hpp>

#include "train/text_run.h"

namespace shoal::train {

// Adds them to `app`; `options` is filled by parsing and outlives `app`. finish_text_options is called after parsing.
struct TextArguments {
  TextOptions options;
  std::string optimizer = "adamw";
  std::string precision = "fp32";
  double target_loss = 0;
};
void add_text_options(CLI::App& app, TextArguments& arguments);
// Throws Error (Exit::usage) for options that contradict each other.
TextOptions finish_text_options(const CLI::App& app, TextArguments arguments);

}  // namespace shoal::train
