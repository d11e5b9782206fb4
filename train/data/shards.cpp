// SPDX-License-Identifier: Apache-2.0
#include "train/data/shards.h"

#include <algorithm>

#include "train/trainer.h"

namespace shoal::train {
namespace {

// Apart from the orders of epochs, which begin at 1.
constexpr std::size_t kOfSamples = 1'000'001, kOfPieces = 1'000'002;

// The i-th of n equal parts.
std::span<const std::uint32_t> piece(std::span<const std::uint32_t> all, std::size_t i, std::size_t n) {
  const std::size_t begin = all.size() * i / n, end = all.size() * (i + 1) / n;
  return all.subspan(begin, end - begin);
}

}  // namespace

std::vector<std::uint32_t> shard(std::span<const std::uint8_t> labels, Seat seat, Spread spread, std::uint64_t seed) {
  std::vector<std::uint32_t> order = shuffled(labels.size(), seed, kOfSamples);
  if (spread == Spread::even) {
    const auto mine = piece(order, seat.rank, seat.world);
    return {mine.begin(), mine.end()};
  }
  std::ranges::stable_sort(order, {}, [&](std::uint32_t sample) { return labels[sample]; });
  const std::vector<std::uint32_t> dealt = shuffled(2 * seat.world, seed, kOfPieces);
  std::vector<std::uint32_t> mine;
  for (const std::size_t i : {2 * seat.rank, 2 * seat.rank + 1}) {
    const auto part = piece(order, dealt[i], dealt.size());
    mine.insert(mine.end(), part.begin(), part.end());
  }
  return mine;
}

}  // namespace shoal::train
