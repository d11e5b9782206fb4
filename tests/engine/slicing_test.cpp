// SPDX-License-Identifier: Apache-2.0
#include "engine/slicing.h"

#include <catch2/catch.hpp>

using namespace shoal;
using namespace shoal::engine;

TEST_CASE("slicing: every element lies in exactly one part, whatever the count, the chunks and the length of a part") {
  for (const std::size_t count : {0uL, 1uL, 2uL, 7uL, 63uL, 64uL, 65uL, 1000uL, 4099uL})
    for (const std::int32_t chunks : {1, 2, 3, 7, 16})
      for (const std::size_t part : {1uL, 4uL, 60uL, 256uL, 65536uL})
        for (const bool fixed : {false, true}) {
          const Slicing s = (fixed ? make_fixed_slicing : make_slicing)({count}, DataType::float32, chunks, {part});
          INFO("count " << count << ", " << chunks << " chunks, parts of " << part << " bytes, fixed " << fixed);
          std::vector<int> seen(count, 0);
          for (std::size_t k = 0; k < s.slices; ++k)
            for (std::int32_t c = 0; c < chunks; ++c) {
              const plan::Range range = s.range(k, chunks, c);
              REQUIRE(range.begin <= range.end);
              REQUIRE(range.length() <= std::max<std::size_t>(1, part / 4));
              REQUIRE(range.length() <= s.longest(chunks));
              for (std::size_t i = range.begin; i < range.end; ++i) ++seen[i];
            }
          CHECK(std::count(seen.begin(), seen.end(), 1) == static_cast<std::ptrdiff_t>(count));
        }
}

TEST_CASE("slicing: a block shorter than the longest has nothing in the slices past its end") {
  const Slicing s = make_slicing({1000}, DataType::int8, 1, {100});
  REQUIRE(s.slices > 3);
  CHECK(s.range(0, 1, 0, 30) == plan::Range{0, 30});
  CHECK(s.range(1, 1, 0, 30).length() == 0);
  CHECK(s.range(s.slices - 1, 1, 0, 0).length() == 0);
}

TEST_CASE("slicing: where only two ranks know a block's length, both cut it alike whatever their other blocks are") {
  const Slicing mine = make_fixed_slicing({5000}, DataType::float32, 1, {4096}),
                theirs = make_fixed_slicing({90000}, DataType::float32, 1, {4096});
  CHECK(mine.slice == theirs.slice);
  for (std::size_t k = 0; k < mine.slices; ++k) CHECK(mine.range(k, 1, 0, 5000) == theirs.range(k, 1, 0, 5000));
}
