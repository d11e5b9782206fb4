// SPDX-License-Identifier: Apache-2.0
// How many eager messages a link holds. The receiver tells what it has released only once more than `slack` are untold, or beside
// a message of its own; that the sender has its agreed credits all the same, the window is longer by as many. Value type.
#pragma once

#include <cstdint>

namespace shoal::transports::ucx {

struct CreditWindow {
  explicit CreditWindow(int credits)
      : slack(static_cast<std::uint32_t>(credits) / 2), size(static_cast<std::uint32_t>(credits) + slack) {}
  std::uint32_t slack;
  std::uint32_t size;
};

}  // namespace shoal::transports::ucx
