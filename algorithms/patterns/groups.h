// SPDX-License-Identifier: Apache-2.0
// How ranks are put into groups where nothing is known of hosts. Pure; any thread.
#pragma once

#include <cstdint>

#include "core/types.h"

namespace shoal::algorithms {

// Ranks a group: the largest divisor of the world that is not above its root, so that groups are about as many as ranks in one.
constexpr std::int32_t balanced_group(World world) {
  std::int32_t group = 1;
  for (std::int32_t g = 2; g * g <= world.value; ++g)
    if (world.value % g == 0) group = g;
  return group;
}

}  // namespace shoal::algorithms
