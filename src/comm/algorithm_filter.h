// SPDX-License-Identifier: Apache-2.0
// What SHOAL_ALGO or NCCL_ALGO allow. Grammar (NCCL 2.24): entries separated by ';', each [function:]list, only the first may
// lack its function and then speaks of all; a list is names separated by ',', with '^' in front: all but these. Letters of either
// case. Functions are NCCL's names (AllReduce) or ours (all_reduce); algorithms are the names of our table, or NCCL's: Ring is
// all rings, Tree all trees, PAT pat; CollNet* and NVLS* are known and have no counterpart here. Value type.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/algorithms.h"
#include "core/status.h"

namespace shoal::comm {

class AlgorithmFilter {
 public:
  // invalid_argument names the variable and the part that is not known.
  static Result<AlgorithmFilter> parse(std::string_view variable, std::string_view text);

  // A collective for which the text leaves nothing, or of which it does not speak, is free in its choice.
  bool allows(const algorithms::Algorithm& algorithm) const;
  // Whether something was said of this collective.
  bool restricts(plan::Collective collective) const { return !allowed_[static_cast<std::size_t>(collective)].empty(); }
  // The only one allowed of this collective; null if there are several.
  const algorithms::Algorithm* only(plan::Collective collective) const;

 private:
  std::array<std::vector<const algorithms::Algorithm*>, plan::kCollectives> allowed_;  // empty: all
};

}  // namespace shoal::comm
