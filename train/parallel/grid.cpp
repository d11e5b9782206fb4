// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/grid.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <set>
#include <utility>

#include "train/error.h"

namespace shoal::train {

void check_grid(const GridShape& shape, std::size_t world) {
  if (shape.world() == world) return;
  throw failure(Exit::usage, "--tp {} x --sp {} x --dp {} x --pp {} are {} ranks, and the launch has {}", shape.tensor,
                shape.sequence, shape.data, shape.pipeline, shape.world(), world);
}

GridPlace place_in(const GridShape& shape, std::size_t rank) {
  GridPlace place;
  place.tensor = rank % shape.tensor;
  place.sequence = rank / shape.tensor % shape.sequence;
  place.data = rank / (shape.tensor * shape.sequence) % shape.data;
  place.pipeline = rank / (shape.tensor * shape.sequence * shape.data);
  return place;
}

std::size_t rank_at(const GridShape& shape, const GridPlace& place) {
  return place.tensor + shape.tensor * (place.sequence + shape.sequence * (place.data + shape.data * place.pipeline));
}

std::vector<std::size_t> group_of(const GridShape& shape, std::size_t rank, Axis axis) {
  std::vector<std::size_t> ranks;
  const GridPlace mine = place_in(shape, rank);
  for (std::size_t other = 0; other < shape.world(); ++other) {
    const GridPlace place = place_in(shape, other);
    const std::array<bool, 4> differs{place.tensor != mine.tensor, place.sequence != mine.sequence, place.data != mine.data,
                                      place.pipeline != mine.pipeline};
    const std::array<bool, 4> may{axis == Axis::tensor, axis == Axis::sequence || axis == Axis::replicas,
                                  axis == Axis::data || axis == Axis::replicas, axis == Axis::pipeline};
    bool together = true;
    for (std::size_t i = 0; i < differs.size(); ++i) together = together && (!differs[i] || may[i]);
    if (together) ranks.push_back(other);
  }
  return ranks;
}

std::string describe(const GridShape& shape) {
  std::string text;
  constexpr std::array kAxes{std::pair(Axis::tensor, "tensor"), std::pair(Axis::sequence, "sequence"),
                             std::pair(Axis::data, "data"), std::pair(Axis::pipeline, "pipeline")};
  for (const auto& [axis, name] : kAxes) {
    std::set<std::vector<std::size_t>> groups;
    for (std::size_t rank = 0; rank < shape.world(); ++rank) groups.insert(group_of(shape, rank, axis));
    if (groups.begin()->size() == 1) continue;
    text += fmt::format("{}{} ", text.empty() ? "" : "; ", name);
    bool first = true;
    for (const std::vector<std::size_t>& each : groups) {
      text += fmt::format("{}{}", first ? "" : " | ", fmt::join(each, " "));
      first = false;
    }
  }
  return text.empty() ? "one rank" : text;
}

}  // namespace shoal::train
