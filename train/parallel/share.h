// SPDX-License-Identifier: Apache-2.0
// Who takes which samples: a list in blocks of kSampleBlock (nn/block_sum.h says why), and as many consecutive blocks a rank as
// evenly as they divide, the first ranks one more. Pure functions; any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "train/nn/block_sum.h"

namespace shoal::train {

// A place in the world of this run, 0 <= rank < world.
struct Seat {
  std::size_t rank = 0;
  std::size_t world = 1;
};

constexpr std::size_t blocks_of(std::size_t samples) { return (samples + kSampleBlock - 1) / kSampleBlock; }

// [samples] the share of rank 0, which no other exceeds.
constexpr std::size_t largest_share(std::size_t samples, std::size_t world) {
  return std::min(samples, (blocks_of(samples) + world - 1) / world * kSampleBlock);
}

template <typename T>
std::span<T> share(std::span<T> all, Seat seat) {
  const std::size_t least = blocks_of(all.size()) / seat.world, longer = blocks_of(all.size()) % seat.world;
  const std::size_t first = seat.rank * least + std::min(seat.rank, longer), count = least + (seat.rank < longer ? 1 : 0);
  const std::size_t begin = std::min(all.size(), first * kSampleBlock),
                    end = std::min(all.size(), (first + count) * kSampleBlock);
  return all.subspan(begin, end - begin);
}

}  // namespace shoal::train
