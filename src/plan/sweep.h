// SPDX-License-Identifier: Apache-2.0
// Checks algorithms for many worlds, roots and groupings: what `shoal-plan check` and the tests run.
//
// Worlds 1..dense: every root, in every mode that the plan declares; where grouping changes the plan, also every group size that
// divides the world. The sampled worlds above: roots 0, 1 and the last, eager, one run, and groups of 8 where they divide the
// world. Of these, a plan set that moves more chunks than a budget (the largest sampled world has one of its own), or needs more
// memory for its steps than kPlanBytes, is left out, and the result says so. Uses threads of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plan/subject.h"

namespace shoal::plan {

struct SweepOptions {
  std::int32_t dense = 64;
  std::vector<std::int32_t> sampled = {65, 96, 127, 128, 255, 256, 500, 512, 513, 1000, 1024, 2048, 4095, 4096};
  // Chunks that a plan set of a sampled world may move in one run: one for every pair of 2048 ranks, or of 4096.
  std::int64_t budget = std::int64_t{1} << 22, largest_budget = std::int64_t{1} << 24;
  int threads = 0;                 // 0: as many as there are processors
  std::size_t most_failures = 20;  // that are kept
};
inline constexpr std::size_t kPlanBytes = std::size_t{512} << 20;

struct SweepResult {
  std::int64_t sets = 0;              // checked
  std::int64_t refused = 0;           // of these: the algorithm has no plan
  std::int64_t wrong = 0;             // of these
  std::vector<std::string> failures;  // the first ones
  std::vector<std::string> left_out;  // "all_reduce ring, world 4095: more than 4194304 chunks"
};

SweepResult sweep(std::span<const Subject> subjects, const SweepOptions& options = {});

}  // namespace shoal::plan
