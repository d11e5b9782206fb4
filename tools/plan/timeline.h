// SPDX-License-Identifier: Apache-2.0
// A plan set in logical time, for drawing: every step takes one column of its lane, and a message is there a column after it was
// sent. Links hold any number of messages. Pure; the plans outlive the timeline.
#pragma once

#include <span>
#include <vector>

#include "core/status.h"
#include "plan/plan.h"

namespace shoal::plan_tool {

struct Timeline {
  struct Box {  // one step
    std::int32_t rank = 0, lane = 0, column = 0;
    const plan::Step* step = nullptr;
    std::int32_t iteration = 0;
    // What it handles: chunks by number; in an all-to-all, origin * world + destination. Followed through scratch and shared
    // slots.
    std::vector<std::int32_t> data;
  };
  struct Arrow {  // from the sender's box to the receiver's
    std::size_t from = 0, to = 0;
  };
  std::vector<Box> boxes;
  std::vector<Arrow> arrows;
  std::int32_t columns = 0;
};

// Fails if there would be more boxes than that.
Result<Timeline> timeline(std::span<const plan::Plan> plans, std::size_t most_boxes);

}  // namespace shoal::plan_tool
