// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/share.h"

#include <catch2/catch.hpp>
#include <numeric>
#include <vector>

namespace shoal::train {
namespace {

TEST_CASE("share: the ranks of worlds 1 to 9 take every sample exactly once, in order") {
  for (std::size_t world = 1; world <= 9; ++world) {
    for (std::size_t batch = 0; batch <= 200; ++batch) {
      std::vector<int> all(batch);
      std::iota(all.begin(), all.end(), 0);
      std::vector<int> joined;
      for (std::size_t rank = 0; rank < world; ++rank) {
        const auto mine = share(std::span(all), {rank, world});
        joined.insert(joined.end(), mine.begin(), mine.end());
      }
      REQUIRE(joined == all);
    }
  }
}

TEST_CASE("share: no rank has more than the first, and whole blocks differ by one at most") {
  for (std::size_t world = 1; world <= 9; ++world) {
    for (std::size_t batch = 0; batch <= 200; ++batch) {
      const std::vector<int> all(batch);
      const std::size_t first = blocks_of(share(std::span(all), {0, world}).size());
      CHECK(share(std::span(all), {0, world}).size() == largest_share(batch, world));
      for (std::size_t rank = 0; rank < world; ++rank) {
        const auto mine = share(std::span(all), {rank, world});
        CHECK(mine.size() <= largest_share(batch, world));
        CHECK(blocks_of(mine.size()) + 1 >= first);
      }
    }
  }
}

TEST_CASE("share: a block is never cut") {
  const std::vector<int> all(128);
  const auto size = [&](std::size_t rank, std::size_t world) { return share(std::span(all), {rank, world}).size(); };
  CHECK(size(0, 2) == 64);
  CHECK(size(0, 3) == 48);
  CHECK(size(1, 3) == 40);
  CHECK(size(2, 3) == 40);
  CHECK(size(3, 5) == 24);
}

}  // namespace
}  // namespace shoal::train
