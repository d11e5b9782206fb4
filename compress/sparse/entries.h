// SPDX-License-Identifier: Apache-2.0
// A sparse vector as a list: some elements of a vector by index, all others being zero. Values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shoal::compress::sparse {

// Indices have 32 bits. Vectors that are longer go dense.
constexpr std::uint64_t kMostElements = std::uint64_t{1} << 32;

struct EntriesView {
  std::span<const std::uint32_t> indices;  // strictly increasing
  std::span<const float> values;           // as many
  std::size_t size() const { return indices.size(); }
  EntriesView part(std::size_t first, std::size_t count) const {
    return {indices.subspan(first, count), values.subspan(first, count)};
  }
};

struct Entries {
  std::vector<std::uint32_t> indices;
  std::vector<float> values;

  std::size_t size() const { return indices.size(); }
  EntriesView view() const { return {indices, values}; }
  void clear() {
    indices.clear();
    values.clear();
  }
  void push(std::uint32_t index, float value) {
    indices.push_back(index);
    values.push_back(value);
  }
  void assign(EntriesView from) {
    indices.assign(from.indices.begin(), from.indices.end());
    values.assign(from.values.begin(), from.values.end());
  }
};

}  // namespace shoal::compress::sparse
