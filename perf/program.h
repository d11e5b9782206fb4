// SPDX-License-Identifier: Apache-2.0
// shoal-perf from the command line to the exit code. Call once, from main's thread.
#pragma once

#include <string>
#include <vector>

namespace shoal::perf {

int run_program(const std::string& program, const std::vector<std::string>& arguments);

}  // namespace shoal::perf
