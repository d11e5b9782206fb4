// SPDX-License-Identifier: Apache-2.0
#include "train/data/shards.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <set>

namespace shoal::train {
namespace {

std::vector<std::uint8_t> ten_labels(std::size_t samples) {
  std::vector<std::uint8_t> labels(samples);
  for (std::size_t i = 0; i < samples; ++i) labels[i] = static_cast<std::uint8_t>(i * 7 % 10);
  return labels;
}

}  // namespace

TEST_CASE("shards: every sample is one rank's, in any world, and sizes are nearly equal") {
  const std::vector<std::uint8_t> labels = ten_labels(1003);
  for (const Spread spread : {Spread::even, Spread::by_label})
    for (const std::size_t world : {1, 2, 3, 8, 13}) {
      INFO("world " << world << (spread == Spread::even ? ", even" : ", by label"));
      std::vector<std::uint32_t> all;
      std::set<std::size_t> sizes;
      for (std::size_t rank = 0; rank < world; ++rank) {
        const std::vector<std::uint32_t> mine = shard(labels, {rank, world}, spread, 5);
        sizes.insert(mine.size());
        all.insert(all.end(), mine.begin(), mine.end());
      }
      std::ranges::sort(all);
      std::vector<std::uint32_t> expected(labels.size());
      std::iota(expected.begin(), expected.end(), 0U);
      CHECK(all == expected);
      CHECK(*sizes.rbegin() - *sizes.begin() <= (spread == Spread::even ? 1U : 2U));
    }
}

TEST_CASE("shards: by label a rank sees few kinds, evenly all of them") {
  const std::vector<std::uint8_t> labels = ten_labels(2000);
  for (std::size_t rank = 0; rank < 10; ++rank) {
    std::set<std::uint8_t> even, sorted;
    for (const std::uint32_t i : shard(labels, {rank, 10}, Spread::even, 1)) even.insert(labels[i]);
    for (const std::uint32_t i : shard(labels, {rank, 10}, Spread::by_label, 1)) sorted.insert(labels[i]);
    CHECK(even.size() == 10);
    CHECK(sorted.size() <= 2);
  }
}

TEST_CASE("shards: the seed decides") {
  const std::vector<std::uint8_t> labels = ten_labels(500);
  for (const Spread spread : {Spread::even, Spread::by_label}) {
    CHECK(shard(labels, {1, 4}, spread, 1) == shard(labels, {1, 4}, spread, 1));
    CHECK(shard(labels, {1, 4}, spread, 1) != shard(labels, {1, 4}, spread, 2));
  }
}

TEST_CASE("shards: a world of more ranks than samples leaves some with none") {
  CHECK(shard(ten_labels(2), {0, 3}, Spread::even, 1).empty());
  CHECK(shard({}, {0, 1}, Spread::by_label, 1).empty());
}

}  // namespace shoal::train
