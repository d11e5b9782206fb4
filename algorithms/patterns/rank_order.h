// SPDX-License-Identifier: Apache-2.0
// Sums in the order of ranks: what arrives straight from every other rank is taken in order, and this rank's own share in its
// turn, so that whoever sums gets the same bits. Pure; used while a plan is built, by one thread.
#pragma once

#include "plan/builder.h"

namespace shoal::algorithms {

// result = mine of rank 0 + mine of rank 1 + ...; every other rank sends one message. What is below `me` meets in `partial`, for
// `result` may be the memory of `mine`. Worlds of two and more.
inline void recv_in_rank_order(plan::LaneBuilder& lane, Rank me, World world, plan::Chunk mine, plan::Chunk partial,
                               plan::Chunk result) {
  using namespace plan;
  const std::int32_t r = me.value, p = world.value;
  // The sum so far is in `source`; adds ranks [first, end).
  const auto add = [&](std::int32_t first, std::int32_t end, Chunk source, Chunk target, bool last) {
    lane.loop(end - first, [&] { lane.recv_reduce(rotating(first, 1, p), source, target, last); });
  };
  std::int32_t above = r + 1;  // the first rank that is added to `result`
  if (r > 0) {
    lane.recv(fixed(Rank{0}), partial);
    add(1, r, partial, partial, false);
    lane.copy(mine, result);
    lane.reduce(partial, result, /*final=*/r == p - 1);
  } else {
    add(1, 2, mine, result, p == 2);
    above = 2;
  }
  add(above, p - 1, result, result, false);
  if (above < p) add(p - 1, p, result, result, true);
}

}  // namespace shoal::algorithms
