// SPDX-License-Identifier: Apache-2.0
// What a programmer of this library did wrong is a failed expectation: an exception that never crosses the C API (src/api turns
// it into an internal error), never an abort.
#pragma once

#include <fmt/format.h>

#include <source_location>
#include <stdexcept>

namespace shoal {

class BrokenExpectation : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

inline void expects(bool condition, const char* what, std::source_location where = std::source_location::current()) {
  if (!condition) [[unlikely]]
    throw BrokenExpectation(fmt::format("{}:{}: {}: broken expectation: {}", where.file_name(), where.line(), where.function_name(), what));
}

}  // namespace shoal
