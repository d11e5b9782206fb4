// SPDX-License-Identifier: Apache-2.0
// The commands of shoal-topo. Each takes the words after its name, prints to standard output and says how it ended.
#pragma once

#include <string>
#include <vector>

namespace shoal::topo_tool {

inline constexpr int kFound = 1;  // check has advice, diff has differences, a file could not be written
inline constexpr int kUsage = 2;  // an argument was wrong, or a file that it names

struct Ending {
  int code = 0;
  std::string error;  // one line for standard error, without the program's name
};

using Words = std::vector<std::string>;

Ending show(const Words& words);
Ending check(const Words& words);
Ending diff(const Words& words);
Ending bound(const Words& words);
Ending measure(const Words& words);
Ending ranks(const Words& words);

}  // namespace shoal::topo_tool
