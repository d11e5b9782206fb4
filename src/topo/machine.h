// SPDX-License-Identifier: Apache-2.0
// What this machine is, in words, as hwloc and the kernel tell it. Unknown things are left out, never guessed.
#pragma once

#include <string>

namespace shoal::topo {

// Three lines: processors and caches; memory; network interfaces that could be used.
std::string describe_machine();

}  // namespace shoal::topo
