// SPDX-License-Identifier: Apache-2.0
// How good the checker is: spoils plans in every way that a mistake would and counts how often the checker sees it. A mutation is
// only applied where it makes the plan wrong, so one that survives means a hole in the checker or a step that a plan does not
// need. Pure but for the threads it runs on.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plan/subject.h"

namespace shoal::plan {

inline constexpr int kMutations = 26;
std::span<const std::string_view> mutation_names();

struct MutationOptions {
  std::vector<std::int32_t> worlds = {2, 3, 4, 5, 7, 8};  // of rooted collectives the root is 1
  int threads = 0;                                        // 0: as many as there are processors
  std::size_t most_survivors = 20;                        // that are kept, a subject
};

struct MutationCount {
  std::int64_t applied = 0, caught = 0;
};

// What became of one subject's plans.
struct MutationRow {
  std::string subject;
  std::array<MutationCount, kMutations> counts{};
  // "all_reduce ring, world 4: drop a step: rank 2, lane 0, loop 1, step 0 (recv ...)"
  std::vector<std::string> survivors;
};
std::vector<MutationRow> mutate(std::span<const Subject> subjects, const MutationOptions& options = {});

// A line a subject: caught/applied for each mutation, numbered as in the list above it.
std::string mutation_table(std::span<const MutationRow> rows);

}  // namespace shoal::plan
