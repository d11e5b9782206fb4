// SPDX-License-Identifier: Apache-2.0
// One half of a row: times a call over its iterations, then has it verified. Runs in the team's thread; all ranks measure the
// same problem at the same time and get the same answer.
#pragma once

#include "perf/verify.h"

namespace shoal::perf {

class Measurer {
 public:
  // `flip_rank`: see Verifier.
  Measurer(const Options& options, Team& team, std::optional<int> flip_rank)
      : options_(options), team_(team), verifier_(options, team, flip_rank) {}

  MaybeFailure measure(const Problem& problem, Measurement& result);

 private:
  struct Times {
    double wall_us = 0, cpu_us = 0;  // a call
    std::vector<double> iterations_us;
  };
  void write_inputs(const Problem& problem, Pattern& pattern);
  MaybeFailure warm_up(const Problem& problem, const Calls& calls);
  MaybeFailure time_calls(const Problem& problem, const Calls& calls, Times& times);
  // Each span begins with inputs that were just rewritten, and ends when the call is done.
  MaybeFailure time_fresh_calls(const Problem& problem, const Calls& calls, Pattern& pattern, Times& times);
  MaybeFailure wait_as_asked();
  MaybeFailure average(Times& times);

  const Options& options_;
  Team& team_;
  Verifier verifier_;
};

}  // namespace shoal::perf
