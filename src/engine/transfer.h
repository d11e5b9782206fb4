// SPDX-License-Identifier: Apache-2.0
// One message of a user from one rank to another. Value type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/types.h"

namespace shoal::engine {

struct Transfer {
  Rank peer;
  bool sending = false;
  std::byte* memory = nullptr;  // only read if sending
  Bytes size;
  std::uint64_t sequence = 0;  // among the transfers between these two in this direction: 1, 2, ...
};

// "send #3 of 80 bytes to 2"
std::string describe(const Transfer& transfer);

}  // namespace shoal::engine
