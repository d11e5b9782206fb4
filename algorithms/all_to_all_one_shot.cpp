// SPDX-License-Identifier: Apache-2.0
// All-to-all in one shot over memory that all ranks can read.
//
// Idea: everybody shows what is for the others and tells them; then each rank copies its block of all others straight out of
// their memory. For four ranks:
//
//   show 0 1 2 3 | rank r: copy r r r
//
// Cost: 1 round of signals; each rank writes and reads (p-1)/p n bytes. Wins for small blocks within a host: one wait for each
// peer. All start with the next rank's block, so that no two read the same memory at once. Two sets of slots take turns, so that
// the next run does not overwrite what a slow rank still reads.
#include "algorithms/algorithms.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan all_to_all_one_shot(const Request& request) {
  const std::int32_t p = request.world.value, r = request.rank.value;
  if (p > 64) return {.refusal = "memory is shared by at most 64 ranks"};
  LaneBuilder lane;
  if (p == 1) {
    lane.copy(input(fixed(0)), output(fixed(0)));
    return {.lanes = {lane.take()}};
  }
  const Rotating next = fixed((r + 1) % p);  // all blocks but the rank's own
  lane.copy(window(Buffer::input, next, p - 1, p), window(Buffer::shared, next, p - 1, p));
  lane.loop(p - 1, [&] { lane.signal(rotating(r + 1, 1, p)); });
  lane.copy(input(fixed(r)), output(fixed(r)));  // while the others get there
  lane.loop(p - 1, [&] { lane.wait(rotating(r - 1, -1, p)); });
  const Rotating above = rotating(r + 1, 1, p);
  lane.loop(p - 1, [&] { lane.copy_shared(above, shared(fixed(r)), output(above)); });
  return {.chunks = 1, .shared = p, .credits = 1, .boards = Boards::one_shot, .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
