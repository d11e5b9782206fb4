// SPDX-License-Identifier: Apache-2.0
// All transports of the library, or the one that SHOAL_TEST_TRANSPORT names.
#include <algorithm>
#include <cstdlib>

#include "transports/pair.h"
#include "transports/transports.h"

namespace shoal::transports {

Tested tested_transports() {
  static const std::vector<link::Transport*> tested = [] {
    std::vector<link::Transport*> list(transports().begin(), transports().end());
    if (const char* only = std::getenv("SHOAL_TEST_TRANSPORT"))
      std::erase_if(list, [only](const link::Transport* each) { return each->name() != only; });
    return list;
  }();
  return {tested};
}

}  // namespace shoal::transports
