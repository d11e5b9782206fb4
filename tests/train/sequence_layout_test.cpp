// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/sequence_layout.h"

#include <catch2/catch.hpp>

namespace shoal::train {
namespace {

std::vector<Place> one_document(std::size_t length) {
  std::vector<Place> places(length);
  for (std::size_t t = 0; t < length; ++t) places[t].position = static_cast<std::int32_t>(t);
  return places;
}

constexpr Placing kPlacings[] = {Placing::contiguous, Placing::striped, Placing::zigzag};

}  // namespace

TEST_CASE("sequence layout: every token is on exactly one rank, all ranks have as many, and padding is less than a round") {
  for (const Placing placing : kPlacings)
    for (std::size_t blocks = 1; blocks <= 5; ++blocks)
      for (std::size_t columns = 1; columns <= 4; ++columns)
        for (std::size_t length = 1; length <= 70; ++length) {
          const SequenceLayout layout(placing, length, blocks, columns);
          std::vector<int> seen(length);
          std::size_t padding = 0;
          for (std::size_t rank = 0; rank < layout.ranks(); ++rank) {
            const auto tokens = layout.tokens_of(rank);
            REQUIRE(tokens.size() == layout.tokens());
            for (const std::size_t token : tokens)
              token == SequenceLayout::kNoToken ? ++padding : static_cast<std::size_t>(++seen[token]);
          }
          REQUIRE(seen == std::vector<int>(length, 1));
          REQUIRE(padding + length == layout.ranks() * layout.tokens());
          REQUIRE(padding < 2 * layout.ranks());
        }
}

TEST_CASE("FC-54: 7 tokens on 2 ranks are 8 places in zig-zag, 2999 on 4 are 3000") {
  const SequenceLayout seven(Placing::zigzag, 7, 2);
  CHECK(seven.tokens_of(0) == std::vector<std::size_t>{0, 1, 6, SequenceLayout::kNoToken});
  CHECK(seven.tokens_of(1) == std::vector<std::size_t>{2, 3, 4, 5});
  CHECK(SequenceLayout(Placing::zigzag, 2999, 4).tokens() == 750);
  const auto places = seven.places_of(0, one_document(7));
  CHECK(places[2].position == 6);
  CHECK(places[3].document == kPadding.document);
}

TEST_CASE("sequence layout: striped deals out in turn, columns cut a block") {
  CHECK(SequenceLayout(Placing::striped, 7, 3).tokens_of(1) == std::vector<std::size_t>{1, 4, SequenceLayout::kNoToken});
  const SequenceLayout grid(Placing::zigzag, 16, 2, 2);
  CHECK(grid.tokens_of(0) == std::vector<std::size_t>{0, 1, 2, 3});
  CHECK(grid.tokens_of(1) == std::vector<std::size_t>{12, 13, 14, 15});
  CHECK(grid.tokens_of(2) == std::vector<std::size_t>{4, 5, 6, 7});
  CHECK(grid.block_places(1, one_document(16)).back().position == 11);
}

TEST_CASE("sequence layout: in zig-zag every hop is two chunks squared, striped is a triangle") {
  constexpr std::size_t kBlocks = 4, kChunk = 8, kLength = 2 * kBlocks * kChunk, kBlock = 2 * kChunk;
  const auto whole = one_document(kLength);
  const SequenceLayout zigzag(Placing::zigzag, kLength, kBlocks), striped(Placing::striped, kLength, kBlocks);
  for (std::size_t q = 0; q < kBlocks; ++q)
    for (std::size_t k = 0; k < kBlocks; ++k) {
      CHECK(visible_pairs(zigzag.block_places(q, whole), zigzag.block_places(k, whole), true) ==
            2 * kChunk * kChunk + (q == k ? kChunk : 0));
      CHECK(visible_pairs(striped.block_places(q, whole), striped.block_places(k, whole), true) ==
            (k <= q ? kBlock * (kBlock + 1) / 2 : kBlock * (kBlock - 1) / 2));
    }
}

TEST_CASE("sequence layout: in lock step zig-zag gains (2P-1)/P over contiguous blocks") {
  for (const std::size_t blocks : {std::size_t{2}, std::size_t{4}, std::size_t{8}}) {
    const std::size_t length = blocks * 128;
    const auto whole = one_document(length);
    const auto cost = [&](Placing placing) {
      return static_cast<double>(lock_step_pairs(SequenceLayout(placing, length, blocks), whole, true));
    };
    const double gain = static_cast<double>(2 * blocks - 1) / static_cast<double>(blocks);
    CHECK(cost(Placing::contiguous) / cost(Placing::zigzag) == Approx(gain).epsilon(0.05));
    CHECK(cost(Placing::contiguous) / cost(Placing::striped) == Approx(gain).epsilon(0.05));
  }
}

TEST_CASE("visible pairs: documents, padding, causal or not") {
  std::vector<Place> packed{{0, 0}, {0, 1}, {0, 2}, {0, 3}, {1, 0}, {1, 1}, {1, 2}, kPadding};
  CHECK(visible_pairs(packed, packed, true) == 10 + 6);
  CHECK(visible_pairs(packed, packed, false) == 16 + 9);
  CHECK(visible_pairs(std::vector<Place>{kPadding}, packed, false) == 0);
  CHECK(visible_pairs(packed, {}, false) == 0);
}

}  // namespace shoal::train
