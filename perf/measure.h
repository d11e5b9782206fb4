// SPDX-License-Identifier: Apache-2.0
// One half of a row: times a call over its iterations, then checks calls. Runs in the team's thread; all ranks measure the same
// problem at the same time and get the same answer.
#pragma once

#include <optional>

#include "perf/team.h"

namespace shoal::perf {

struct Problem {
  const Collective* collective;
  const ElementType* type;
  const ReductionInfo* reduction;
  int root;  // -1 if the collective has none
  std::uint64_t bytes;
  bool in_place;

  Extent extent(int world) const { return collective->extent(bytes, type->bytes, world); }
};

class Measurer {
 public:
  // `flip_rank`: that rank changes an element of its output before each check, to show that checks find it (tests only).
  Measurer(const Options& options, Team& team, std::optional<int> flip_rank)
      : options_(options), team_(team), flip_rank_(flip_rank) {}

  MaybeFailure measure(const Problem& problem, Measurement& result);

 private:
  struct Times {
    double wall_us = 0, cpu_us = 0;  // a call
    std::vector<double> iterations_us;
  };
  std::span<std::byte> send_region(Member& member, const Problem& problem) const;
  std::span<std::byte> receive_region(Member& member, const Problem& problem) const;
  // In place: from the start of the first to the end of the last.
  std::span<std::byte> region_in_use(Member& member, const Problem& problem) const;
  void prepare(const Problem& problem, std::uint64_t seed);
  MaybeFailure make_calls(const Problem& problem);
  void release_operations();
  MaybeFailure time_calls(const Problem& problem, Times& times);
  MaybeFailure wait_as_asked();
  MaybeFailure average(Times& times);
  MaybeFailure check(const Problem& problem, std::int64_t& wrong);
  // One call that is reported on; `wrong`: elements that ranks disagree on.
  MaybeFailure check_compressed(const Problem& problem, Measurement& result);
  std::int64_t count_wrong(const Problem& problem, Member& member, Pattern& pattern);
  Pattern make_pattern(const Problem& problem, std::uint64_t seed) const;
  Place place(const Member& member, const Problem& problem) const { return {member.rank, team_.world(), problem.root}; }

  const Options& options_;
  Team& team_;
  std::optional<int> flip_rank_;
  std::vector<Call> calls_;  // a member each
  bool made_operations_ = false;
  std::vector<shoalCompressionReport> reports_;  // a member each
};

}  // namespace shoal::perf
