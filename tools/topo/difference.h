// SPDX-License-Identifier: Apache-2.0
// In what two hosts differ. Pure.
#pragma once

#include <string>
#include <vector>

#include "topo/host.h"

namespace shoal::topo_tool {

// "interfaces eth0: Mbps 25000 -> 10000", "gpus 3: only in A". Devices are matched by name, bus id or number, not by order. What
// every host has of its own (names, addresses, identifiers) counts only with `all`.
std::vector<std::string> differences(const topo::Host& a, const topo::Host& b, bool all);

}  // namespace shoal::topo_tool
