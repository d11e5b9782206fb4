// SPDX-License-Identifier: Apache-2.0
// A way of training: one file a subcommand, one line in main's table.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>

#include "train/error.h"
#include "train/parallel/share.h"

namespace shoal::train {

// Called after parsing with this process's place in the launch.
using Run = std::function<Exit(Seat)>;

// Each adds itself to `program`. The returned function belongs with the subcommand `app`.
struct Subcommand {
  CLI::App* app;
  Run run;
};
Subcommand add_data(CLI::App& program);
Subcommand add_pipeline(CLI::App& program);
Subcommand add_tensor(CLI::App& program);
Subcommand add_sequence(CLI::App& program);
Subcommand add_hybrid(CLI::App& program);
Subcommand add_zero(CLI::App& program);
Subcommand add_delayed(CLI::App& program);
Subcommand add_plan_memory(CLI::App& program);
Subcommand add_search(CLI::App& program);

}  // namespace shoal::train
