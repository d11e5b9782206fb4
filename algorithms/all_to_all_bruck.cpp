// SPDX-License-Identifier: Apache-2.0
// All-to-all after Bruck.
//
// Idea: a block that has to travel i ranks travels by the binary digits of i, in as many hops as digits are set; in the round of
// digit d each rank sends all blocks with this digit, in one message, to the rank d below. Rank r keeps the block that has i to
// travel at output r+i; when all hops are done, the block from rank r+i lies there, which is its place: no scratch and no
// permutation at the end. For four ranks, how far the blocks in rank 0's output have to travel and in which round each is
// swapped:
//
//   output    0   1     2     3
//   to go     0   1     2     1+2
//   round 1       swap        swap      with rank 3 (sent to) and rank 1 (received from)
//   round 2             swap  swap      with rank 2
//
// Cost: ceil(log2 p) rounds of about n/2 bytes, and a permutation of n bytes before. Wins for short blocks. Bruck, Ho, Kipnis,
// Upfal & Weathersby 1997.
#include <algorithm>

#include "algorithms/algorithms.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan all_to_all_bruck(const Request& request) {
  const std::int32_t p = request.world.value, r = request.rank.value;
  const Rotating mine = fixed(r);

  bool alone = false;  // a block that is sent alone goes by reference, and is overwritten at once
  LaneBuilder lane;
  lane.copy(every(Buffer::input, mine, p, -1, p), window(Buffer::output, mine, p, p));  // the block for r-i goes to r+i
  for (std::int32_t digit = 1; digit < p; digit *= 2) {
    const std::int32_t rest = p % (2 * digit);  // the distances with this digit come in runs; the last one may be cut short
    const Chunk blocks{.buffer = Buffer::output,
                       .index = rotating(r + digit, 0, p),
                       .size = p / (2 * digit) * digit + std::max(rest - digit, 0),
                       .run = digit,
                       .pitch = 2 * digit,
                       .wrap = p};
    alone |= blocks.size == 1;
    lane.send(rotating(r - digit, 0, p), blocks);
    lane.recv(rotating(r + digit, 0, p), blocks);
  }
  return {.chunks = 1, .credits = 1, .by_reference = !alone, .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
