// SPDX-License-Identifier: Apache-2.0
// What a programmer of this library did wrong is a failed expectation: an exception that never crosses the C API (src/api turns
// it into an internal error), never an abort.
#pragma once

#include <fmt/format.h>

#include <stdexcept>

namespace shoal {

class BrokenExpectation : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// (std::source_location would say the same; Clang 14 does not have it.)
inline void expects(bool condition, const char* what, const char* file = __builtin_FILE(), int line = __builtin_LINE(),
                    const char* function = __builtin_FUNCTION()) {
  if (!condition) [[unlikely]]
    throw BrokenExpectation(fmt::format("{}:{}: {}: broken expectation: {}", file, line, function, what));
}

}  // namespace shoal
