// SPDX-License-Identifier: Apache-2.0
#include "plan/order.h"

#include <bit>
#include <vector>

namespace shoal::plan {

std::uint64_t butterfly_order(World world) {
  const auto folded = static_cast<std::int32_t>(std::bit_floor(static_cast<std::uint32_t>(world.value)));
  const std::int32_t rem = world.value - folded;
  std::vector<std::uint64_t> level;
  for (std::int32_t leaf = 0; leaf < folded; ++leaf)
    level.push_back(leaf < rem ? order_of_sum(order_of(Rank{2 * leaf}), order_of(Rank{2 * leaf + 1}))
                               : order_of(Rank{leaf + rem}));
  for (; level.size() > 1; level.resize(level.size() / 2))
    for (std::size_t i = 0; i < level.size() / 2; ++i) level[i] = order_of_sum(level[2 * i], level[2 * i + 1]);
  return level.front();
}

}  // namespace shoal::plan
