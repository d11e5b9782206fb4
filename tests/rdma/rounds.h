// SPDX-License-Identifier: Apache-2.0
// Every collective once, with exact results, for whoever wants to know that a wire works.
#pragma once

#include <cstddef>
#include <string>

#include "support/ranks.h"

namespace testing {

// Of `count` elements (of a block, or of the vector), from memory of the library's own if `pinned`, else of malloc's. "" or what
// is wrong.
std::string every_collective(const Ranks& who, ncclComm_t comm, std::size_t count, bool pinned);

}  // namespace testing
