// SPDX-License-Identifier: Apache-2.0
// What is wrong with a message, and whose it is.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/status.h"

namespace shoal::compress::sparse {

inline Status from_rank(std::size_t rank, const Status& status) {
  return {status.code(), fmt::format("compressed message of rank {}: {}", rank, status.text()),
          Rank{static_cast<std::int32_t>(rank)}};
}

}  // namespace shoal::compress::sparse
