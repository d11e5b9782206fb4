// SPDX-License-Identifier: Apache-2.0
// Slurm's list of how many tasks each node of a step has, compressed: "2(x3),1" is 2, 2, 2, 1. Pure function.
#pragma once

#include <optional>
#include <string_view>

namespace shoal::comm {

// Nothing for a malformed list or a node beyond its end.
std::optional<int> tasks_of_node(std::string_view list, int node);

}  // namespace shoal::comm
