// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/types.h"
#include "engine/transfer.h"

namespace shoal::engine {

// What a program of this rank waits for: a message from `peer`, or room towards it.
struct Waiting {
  Rank peer;
  int channel = 0;
  bool to_receive = false;
};

// Where a call stands that has not moved for a while, for those who look for the culprit.
struct Standing {
  std::string doing;  // "all_reduce #88 of 1000 float32, sum: slice 3 of 16, nothing from rank 2"
  Rank waits_for{-1};
  std::vector<Transfer> transfers;  // that have not ended
};

}  // namespace shoal::engine
