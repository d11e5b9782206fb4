// SPDX-License-Identifier: Apache-2.0
// Counts the allocations of a test program. For one thread.
#pragma once

#include <cstddef>

namespace testing {

std::size_t allocations();

}  // namespace testing
