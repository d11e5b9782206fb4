// SPDX-License-Identifier: Apache-2.0
#include "comm/condition.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>

namespace shoal::comm {

// /proc/<pid>/stat: "pid (command) state ..."; the command may hold spaces and parentheses.
std::string condition_of_process(int pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::size_t close = text.rfind(')');
  if (close == std::string::npos || close + 2 >= text.size()) return "";
  switch (text[close + 2]) {
    case 'T':
    case 't': return "it is stopped by a signal or a debugger";
    case 'Z':
    case 'X': return "it has ended, but its parent has not waited for it";
    case 'D': return "it hangs in the kernel (uninterruptible sleep)";
    default: return "";
  }
}

}  // namespace shoal::comm
