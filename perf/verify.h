// SPDX-License-Identifier: Apache-2.0
// Are the results right? Calls made for their results alone, outside every clock. Runs in the team's thread; all ranks verify the
// same problem at the same time and get the same answer.
#pragma once

#include <optional>

#include "perf/calls.h"

namespace shoal::perf {

class Verifier {
 public:
  // `flip_rank`: that rank changes an element of its output before each check, to show that checks find it (tests only).
  Verifier(const Options& options, Team& team, std::optional<int> flip_rank)
      : options_(options), team_(team), flip_rank_(flip_rank) {}

  // Makes -c calls, each with data of its own. `wrong`: elements on all ranks that are not what they must be.
  MaybeFailure check(const Problem& problem, const Calls& calls, std::int64_t& wrong);
  // One compressed call that is reported on; elements that ranks disagree on count as wrong.
  MaybeFailure check_compressed(const Problem& problem, Calls& calls, Measurement& result);

 private:
  void spoil_and_prepare(const Problem& problem, Pattern& pattern, Member& member) const;
  std::int64_t count_wrong(const Problem& problem, Member& member, Pattern& pattern) const;

  const Options& options_;
  Team& team_;
  std::optional<int> flip_rank_;
};

// What compressors see of a gradient: normal values of all magnitudes, other ones on each rank.
void write_gradient(int rank, std::span<std::byte> memory);

}  // namespace shoal::perf
