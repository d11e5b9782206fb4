// SPDX-License-Identifier: Apache-2.0
// Which samples are a rank's own for a whole run. Evenly and at random (IID), or as federated data are: sorted by label and cut
// into two pieces a rank, of which each rank gets two at random, so that most ranks see two kinds of ten (McMahan et al. 2017).
// Pure functions; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "train/parallel/share.h"

namespace shoal::train {

enum class Spread : std::uint8_t { even, by_label };

// The indices of this rank's samples. Over all ranks each index occurs once; sizes differ by at most 1 (even) or 2 (by label).
std::vector<std::uint32_t> shard(std::span<const std::uint8_t> labels, Seat seat, Spread spread, std::uint64_t seed);

}  // namespace shoal::train
