// SPDX-License-Identifier: Apache-2.0
// The whole run of one thread: all cycles, types, reductions, roots and sizes. Every thread of the job walks through the same
// problems; the one with rank 0 reports.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "perf/measure.h"

namespace shoal::perf {

struct SweepResult {
  MaybeFailure failure;
  std::vector<Row> rows;
  Verdict verdict;  // without errors; the same on all ranks
};

struct SweepSettings {
  std::optional<int> flip_rank;
  std::optional<double> required_gbs;
  // Called in the thread of rank 0 for each line or block of lines of the report.
  std::function<void(const std::string&)> print;
};

// Runs the sweep on a team that has joined. The failure, if any, is not printed and the team not aborted.
SweepResult run_sweep(const Options& options, Team& team, const SweepSettings& settings);

// Elements of `bytes` size and all types: what a buffer must hold.
std::size_t buffer_bytes(const Options& options, int world);

// Local date and time: "2026-02-28 13:00:01".
std::string timestamp();

}  // namespace shoal::perf
