// SPDX-License-Identifier: Apache-2.0
// All-gather after Bruck; also for blocks of different lengths.
//
// Idea: each rank holds a window of blocks that begins with its own, and doubles it: in the round of distance d it takes the
// window of the rank d above. The last round takes only what is missing. For four ranks with blocks a b c d, what each rank has:
//
//   rank 0   a   ab   abcd
//   rank 1   b   bc   bcda          windows wrap around, straight at their places in the output: the original's
//   rank 2   c   cd   cdab          rotation at the end is not needed
//   rank 3   d   da   dabc
//
// Cost: ceil(log2 p) rounds and (p-1)/p n bytes sent a rank, for any p; but half of the bytes go p/2 ranks far. Wins for short
// blocks. Bruck, Ho, Kipnis, Upfal & Weathersby 1997.
#include <algorithm>

#include "algorithms/algorithms.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan all_gather_bruck(const Request& request) {
  const std::int32_t p = request.world.value, r = request.rank.value;

  LaneBuilder lane;
  lane.copy(input(fixed(r)), output(fixed(r)));
  for (std::int32_t held = 1; held < p; held *= 2) {
    const std::int32_t moved = std::min(held, p - held);
    const Rotating above = rotating(r + held, 0, p), below = rotating(r - held, 0, p);
    lane.send(below, window(Buffer::output, fixed(r), moved, p));
    lane.recv(above, window(Buffer::output, above, moved, p));
  }
  return {.chunks = 1, .credits = 1, .by_reference = true, .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
