// SPDX-License-Identifier: Apache-2.0
// Counts the allocations of the calling thread of a test program, those of the libraries that it loads among them.
#pragma once

#include <cstddef>

namespace testing {

std::size_t allocations();

}  // namespace testing
