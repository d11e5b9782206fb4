// SPDX-License-Identifier: Apache-2.0
// The process grid of hybrid training: world = pipeline x data x sequence x tensor, in the order of Megatron-LM: tensor ranks are
// neighbours (they talk in every layer, and should share a node), stages are farthest apart (they talk least). A group is the
// ranks that differ in one coordinate only. Pure values; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace shoal::train {

struct GridShape {
  std::size_t tensor = 1;
  std::size_t sequence = 1;
  std::size_t data = 1;
  std::size_t pipeline = 1;

  std::size_t world() const { return tensor * sequence * data * pipeline; }
};

// Throws Error (Exit::usage) naming the numbers if they do not multiply to `world`.
void check_grid(const GridShape& shape, std::size_t world);

// Where a rank is.
struct GridPlace {
  std::size_t tensor = 0, sequence = 0, data = 0, pipeline = 0;
};

// rank = tensor + T (sequence + S (data + D pipeline))
GridPlace place_in(const GridShape& shape, std::size_t rank);
std::size_t rank_at(const GridShape& shape, const GridPlace& place);

enum class Axis { tensor, sequence, data, pipeline, replicas };  // replicas: data and sequence together, who share gradients

// The ranks of `rank`'s group along an axis, ascending.
std::vector<std::size_t> group_of(const GridShape& shape, std::size_t rank, Axis axis);
// "tensor 0 1 | 2 3; pipeline 0 2 | 1 3": all groups with more than one rank.
std::string describe(const GridShape& shape);

}  // namespace shoal::train
