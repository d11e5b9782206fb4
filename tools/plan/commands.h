// SPDX-License-Identifier: Apache-2.0
// The commands of shoal-plan. Each takes the words after its name, prints to standard output and says how it ended.
#pragma once

#include <string>
#include <vector>

namespace shoal::plan_tool {

inline constexpr int kFailed = 1;  // a check failed, or a file could not be written
inline constexpr int kUsage = 2;   // an argument was wrong

struct Ending {
  int code = 0;
  std::string error;  // one line for standard error, without the program's name
};

using Words = std::vector<std::string>;

Ending list(const Words& words);
Ending show(const Words& words);
Ending check(const Words& words);
Ending simulate(const Words& words);
Ending compare(const Words& words);
Ending explain(const Words& words);
Ending desync(const Words& words);

}  // namespace shoal::plan_tool
