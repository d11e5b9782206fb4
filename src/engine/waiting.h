// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/types.h"

namespace shoal::engine {

// What a program of this rank waits for: a message from `peer`, or room towards it.
struct Waiting {
  Rank peer;
  int channel = 0;
  bool to_receive = false;
};

}  // namespace shoal::engine
