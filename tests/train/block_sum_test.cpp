// SPDX-License-Identifier: Apache-2.0
#include "train/nn/block_sum.h"

#include <catch2/catch.hpp>
#include <random>
#include <vector>

namespace shoal::train {
namespace {

TEST_CASE("block sum: values become the nearest multiple of the grid, ties to even") {
  CHECK(on_grid(0.0F) == 0.0F);
  CHECK(on_grid(1.0F) == 1.0F);
  CHECK(on_grid(-1.0F) == -1.0F);
  CHECK(on_grid(0.49F * kGradientGrid) == 0.0F);
  CHECK(on_grid(0.51F * kGradientGrid) == kGradientGrid);
  CHECK(on_grid(-0.51F * kGradientGrid) == -kGradientGrid);
  CHECK(on_grid(0.5F * kGradientGrid) == 0.0F);
  CHECK(on_grid(1.5F * kGradientGrid) == 2 * kGradientGrid);
  CHECK(on_grid(1.5F) == 1.5F);
}

TEST_CASE("block sum: the bits of a sum do not depend on the order of its blocks, nor on how they are grouped") {
  std::mt19937 engine(7);
  std::uniform_real_distribution<float> draw(-0.05F, 0.05F);
  std::vector<std::vector<float>> blocks(100, std::vector<float>(64));
  for (auto& block : blocks) std::ranges::generate(block, [&] { return draw(engine); });

  std::vector<float> ahead(64), back(64), plain_ahead(64), plain_back(64), evens(64), odds(64);
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const auto& last = blocks[blocks.size() - 1 - b];
    add_block(blocks[b], ahead);
    add_block(last, back);
    add_block(blocks[b], b % 2 == 0 ? evens : odds);
    for (std::size_t i = 0; i < 64; ++i) {
      plain_ahead[i] += blocks[b][i];
      plain_back[i] += last[i];
    }
  }
  CHECK(ahead == back);
  for (std::size_t i = 0; i < 64; ++i) CHECK(evens[i] + odds[i] == ahead[i]);
  CHECK(plain_ahead != plain_back);  // without the grid the order shows
}

TEST_CASE("block sum: blocks cover all samples in order, only the last is short") {
  for (std::size_t samples : {std::size_t{0}, std::size_t{1}, kSampleBlock, kSampleBlock + 1, 3 * kSampleBlock}) {
    std::size_t next = 0;
    for_each_block(samples, [&](std::size_t first, std::size_t count) {
      CHECK(first == next);
      CHECK((count == kSampleBlock || first + count == samples));
      CHECK(count > 0);
      next = first + count;
    });
    CHECK(next == samples);
  }
}

}  // namespace
}  // namespace shoal::train
