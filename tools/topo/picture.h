// SPDX-License-Identifier: Apache-2.0
// A host as a picture: boxes in boxes, a colour a kind. Pure.
#pragma once

#include <string>

#include "tools/topo/outline.h"

namespace shoal::topo_tool {

// A self-contained SVG document.
std::string picture(const Branch& host);

}  // namespace shoal::topo_tool
