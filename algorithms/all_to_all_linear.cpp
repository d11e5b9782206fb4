// SPDX-License-Identifier: Apache-2.0
// All-to-all with several messages under way; also for blocks of different lengths.
//
// Idea: the pairwise exchange, but sends run up to eight messages ahead of receives, so that a late rank does not hold up the
// others. Not all p-1 at once: that many messages to one rank would crowd its link. For four ranks, what rank 0 does:
//
//   send to 1, 2, 3;  receive from 3, 2, 1        beyond nine ranks: ...;  receive from p-1, send to 9;  ...
//
// Cost: p-1 messages of n/p bytes, as pairwise, in fewer rounds: what is under way together costs one latency. Wins for blocks of
// middling length, and where ranks are not in step.
#include <algorithm>

#include "algorithms/algorithms.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

namespace {
constexpr std::int32_t kAhead = 8;
}

Plan all_to_all_linear(const Request& request) {
  const std::int32_t p = request.world.value, r = request.rank.value;
  const std::int32_t ahead = std::min(p - 1, kAhead);
  const auto send = [&](LaneBuilder& lane, std::int32_t first) {
    lane.send(rotating(r + first, 1, p), input(rotating(r + first, 1, p)));
  };
  const auto recv = [&](LaneBuilder& lane, std::int32_t first) {
    lane.recv(rotating(r - first, -1, p), output(rotating(r - first, -1, p)));
  };

  LaneBuilder lane;
  lane.loop(ahead, [&] { send(lane, 1); });
  lane.copy(input(fixed(r)), output(fixed(r)));
  lane.loop(p - 1 - ahead, [&] {
    recv(lane, 1);
    send(lane, 1 + ahead);
  });
  lane.loop(ahead, [&] { recv(lane, p - ahead); });
  return {.chunks = 1, .credits = 1, .by_reference = true, .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
