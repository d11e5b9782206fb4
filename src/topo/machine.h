// SPDX-License-Identifier: Apache-2.0
// What this machine is, in words. Unknown things are left out, never guessed.
#pragma once

#include <cstdint>
#include <string>

namespace shoal::topo {

// Three lines: processors and caches; memory; network interfaces that could be used.
std::string describe_machine();

// "1.5 GiB", "512 KiB"
std::string size_text(std::uint64_t bytes);

}  // namespace shoal::topo
