// SPDX-License-Identifier: Apache-2.0
// The calls of a team for one problem, a call a member, and what they need beside memory: pre-multiplied sums and compressors,
// which go with this object. One thread; must end before the team leaves.
#pragma once

#include <optional>
#include <vector>

#include "perf/problem.h"

namespace shoal::perf {

class Calls {
 public:
  Calls() = default;
  ~Calls();
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;

  MaybeFailure make(const Options& options, Team& team, const Problem& problem);

  std::span<const Call> all() const { return calls_; }
  // Have reports written, one a call, until this object ends. Only with a compressor.
  std::span<const shoalCompressionReport> report();

 private:
  MaybeFailure make_sum(const Problem& problem, const Member& member, ncclRedOp_t& op);

  std::vector<Call> calls_;
  std::vector<std::optional<ncclRedOp_t>> sums_;  // made for the call at the same place
  std::vector<shoalCompressionReport> reports_;
};

}  // namespace shoal::perf
