// SPDX-License-Identifier: Apache-2.0
// A plan set as a picture: a row a rank (a line a lane), logical time from left to right, a box a step in the colours of its
// chunks, an arrow a message. Pure.
#pragma once

#include <span>
#include <string>

#include "tools/plan/timeline.h"

namespace shoal::plan_tool {

// `title` and `subtitle` stand on top. A self-contained SVG document.
std::string picture(std::span<const plan::Plan> plans, const Timeline& timeline, const std::string& title,
                    const std::string& subtitle);

}  // namespace shoal::plan_tool
