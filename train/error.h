// SPDX-License-Identifier: Apache-2.0
// How a training run ends. Inside this program failure is an exception that only main catches: one line of text and an exit code.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace shoal::train {

enum class Exit : int {
  ok = 0,
  verdict = 1,        // the run finished, but missed --target-accuracy, failed --check or diverged
  usage = 2,          // an option or a file is wrong
  communication = 3,  // a call of the library failed
};

class Error : public std::runtime_error {
 public:
  Error(Exit code, const std::string& text) : std::runtime_error(text), code_(code) {}
  Exit code() const { return code_; }

 private:
  Exit code_;
};

// throw failure(Exit::usage, "{}: {} bytes", path, n)
template <typename... Args>
Error failure(Exit code, fmt::format_string<Args...> format, Args&&... args) {
  return {code, fmt::format(format, std::forward<Args>(args)...)};
}

}  // namespace shoal::train
