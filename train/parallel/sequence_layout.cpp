// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/sequence_layout.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace shoal::train {
namespace {

constexpr std::size_t up_to_multiple(std::size_t value, std::size_t of) { return (value + of - 1) / of * of; }

std::size_t block_for(Placing placing, std::size_t length, std::size_t blocks, std::size_t columns) {
  if (placing != Placing::zigzag || blocks == 1) return up_to_multiple((length + blocks - 1) / blocks, columns);
  const std::size_t chunk = (length + 2 * blocks - 1) / (2 * blocks);
  return up_to_multiple(2 * chunk, std::lcm(columns, std::size_t{2}));
}

}  // namespace

SequenceLayout::SequenceLayout(Placing placing, std::size_t length, std::size_t blocks, std::size_t columns)
    : placing_(blocks == 1 ? Placing::contiguous : placing),
      length_(length),
      blocks_(blocks),
      columns_(columns),
      block_(block_for(placing, length, blocks, columns)) {}

std::size_t SequenceLayout::number(std::size_t block, std::size_t at) const {
  switch (placing_) {
    case Placing::contiguous: return block * block_ + at;
    case Placing::striped: return at * blocks_ + block;
    case Placing::zigzag: {
      const std::size_t chunk = block_ / 2;
      return at < chunk ? block * chunk + at : (2 * blocks_ - 1 - block) * chunk + at - chunk;
    }
  }
  return kNoToken;
}

std::vector<std::size_t> SequenceLayout::tokens_of(std::size_t rank) const {
  std::vector<std::size_t> numbers(tokens());
  for (std::size_t t = 0; t < numbers.size(); ++t) {
    const std::size_t n = number(block_of(rank), column_of(rank) * tokens() + t);
    numbers[t] = n < length_ ? n : kNoToken;
  }
  return numbers;
}

std::vector<Place> SequenceLayout::places_of(std::size_t rank, std::span<const Place> whole) const {
  std::vector<Place> places;
  for (const std::size_t n : tokens_of(rank)) places.push_back(n == kNoToken ? kPadding : whole[n]);
  return places;
}

std::vector<Place> SequenceLayout::block_places(std::size_t block, std::span<const Place> whole) const {
  std::vector<Place> places;
  for (std::size_t column = 0; column < columns_; ++column) {
    const std::vector<Place> part = places_of(block * columns_ + column, whole);
    places.insert(places.end(), part.begin(), part.end());
  }
  return places;
}

std::uint64_t visible_pairs(std::span<const Place> queries, std::span<const Place> keys, bool causal) {
  std::map<std::int32_t, std::vector<std::int32_t>> positions;  // of keys, by document
  for (const Place key : keys)
    if (key.document >= 0) positions[key.document].push_back(key.position);
  for (auto& [document, each] : positions) std::ranges::sort(each);
  std::uint64_t pairs = 0;
  for (const Place query : queries) {
    const auto found = positions.find(query.document);
    if (found == positions.end()) continue;
    const auto& each = found->second;
    pairs += causal ? static_cast<std::uint64_t>(std::ranges::upper_bound(each, query.position) - each.begin()) : each.size();
  }
  return pairs;
}

std::uint64_t lock_step_pairs(const SequenceLayout& layout, std::span<const Place> whole, bool causal) {
  const std::size_t blocks = layout.blocks();
  std::vector<std::vector<Place>> places;
  for (std::size_t block = 0; block < blocks; ++block) places.push_back(layout.block_places(block, whole));
  std::uint64_t sum = 0;
  for (std::size_t hop = 0; hop < blocks; ++hop) {
    std::uint64_t largest = 0;
    for (std::size_t rank = 0; rank < blocks; ++rank)
      largest = std::max(largest, visible_pairs(places[rank], places[(rank + blocks - hop) % blocks], causal));
    sum += largest;
  }
  return sum;
}

}  // namespace shoal::train
