// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/grid.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "train/error.h"

namespace shoal::train {

using Ranks = std::vector<std::size_t>;

TEST_CASE("grid: the groups of 2 x 2 x 2, tensor ranks neighbours, stages farthest apart") {
  const GridShape shape{.tensor = 2, .data = 2, .pipeline = 2};
  CHECK(group_of(shape, 0, Axis::tensor) == Ranks{0, 1});
  CHECK(group_of(shape, 0, Axis::data) == Ranks{0, 2});
  CHECK(group_of(shape, 0, Axis::pipeline) == Ranks{0, 4});
  CHECK(group_of(shape, 7, Axis::tensor) == Ranks{6, 7});
  CHECK(group_of(shape, 7, Axis::data) == Ranks{5, 7});
  CHECK(group_of(shape, 7, Axis::pipeline) == Ranks{3, 7});
  CHECK(group_of(shape, 7, Axis::sequence) == Ranks{7});
  CHECK(describe(shape) == "tensor 0 1 | 2 3 | 4 5 | 6 7; data 0 2 | 1 3 | 4 6 | 5 7; pipeline 0 4 | 1 5 | 2 6 | 3 7");
  CHECK(describe({}) == "one rank");
}

TEST_CASE("grid: in 2 x 3 x 4 with 2 sequence ranks each rank is in exactly one group of each axis") {
  const GridShape shape{.tensor = 2, .sequence = 2, .data = 3, .pipeline = 4};
  CHECK(shape.world() == 48);
  for (const auto& [axis, size] :
       {std::pair(Axis::tensor, 2), {Axis::sequence, 2}, {Axis::data, 3}, {Axis::pipeline, 4}, {Axis::replicas, 6}}) {
    std::set<Ranks> groups;
    for (std::size_t rank = 0; rank < shape.world(); ++rank) {
      const Ranks group = group_of(shape, rank, axis);
      CHECK(static_cast<int>(group.size()) == size);
      CHECK(std::count(group.begin(), group.end(), rank) == 1);
      groups.insert(group);
    }
    CHECK(static_cast<int>(groups.size()) * size == 48);
  }
  for (std::size_t rank = 0; rank < shape.world(); ++rank) CHECK(rank_at(shape, place_in(shape, rank)) == rank);
}

TEST_CASE("grid: sizes that do not make the world are refused, naming all numbers") {
  CHECK_NOTHROW(check_grid({.tensor = 2, .data = 2}, 4));
  CHECK_THROWS_WITH(check_grid({.tensor = 2, .data = 3}, 8),
                    "--tp 2 x --sp 1 x --dp 3 x --pp 1 are 6 ranks, and the launch has 8");
}

}  // namespace shoal::train
