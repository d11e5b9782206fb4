// SPDX-License-Identifier: Apache-2.0
#include "train/nn/tensor.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <numbers>
#include <numeric>
#include <random>

namespace shoal::train {
namespace {

// (0, 1], from the upper 53 bits: the standard fixes the engine's sequence but not that of its distributions.
double uniform(std::mt19937_64& engine) { return (static_cast<double>(engine() >> 11) + 1.0) * 0x1p-53; }

double normal(std::mt19937_64& engine) {  // Box and Muller 1958
  const double radius = std::sqrt(-2.0 * std::log(uniform(engine)));
  return radius * std::cos(2.0 * std::numbers::pi * uniform(engine));
}

}  // namespace

std::size_t elements(const TensorSpec& spec) {
  return std::accumulate(spec.shape.begin(), spec.shape.end(), std::size_t{1}, std::multiplies<>());
}

void append(std::vector<Tensor>& tensors, TensorSpec spec) {
  const std::size_t offset = tensors.empty() ? 0 : tensors.back().offset + tensors.back().count;
  const std::size_t count = elements(spec);
  tensors.push_back({.spec = std::move(spec), .offset = offset, .count = count});
}

void initialise(std::span<const Tensor> tensors, std::uint64_t seed, std::span<float> values) {
  std::mt19937_64 engine(seed);
  for (const Tensor& tensor : tensors) {
    const double deviation = tensor.spec.fan_in == 0 ? 0.0 : std::sqrt(2.0 / static_cast<double>(tensor.spec.fan_in));
    for (float& value : values.subspan(tensor.offset, tensor.count)) {
      value = deviation == 0.0 ? 0.0F : static_cast<float>(deviation * normal(engine));
    }
  }
}

void initialise_by_name(std::span<const Tensor> tensors, std::uint64_t seed, std::span<float> values) {
  for (const Tensor& tensor : tensors) {
    const TensorSpec& spec = tensor.spec;
    const auto mine = values.subspan(tensor.offset, tensor.count);
    if (spec.fan_in == 0) {
      std::ranges::fill(mine, spec.start);
      continue;
    }
    std::uint64_t name = 0xcbf29ce484222325;
    for (const char c : spec.name) name = (name ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    std::mt19937_64 engine(seed ^ name);
    const double deviation = 1 / std::sqrt(static_cast<double>(spec.fan_in));
    // Rows of the last dimension; a part takes some rows, some columns, of the whole, of which every value is drawn.
    const std::vector<std::size_t>& whole = spec.whole.empty() ? spec.shape : spec.whole;
    const std::size_t columns = whole.back(), my_columns = spec.shape.back(),
                      rows = elements({.name = {}, .shape = whole}) / columns;
    const std::size_t first_row = spec.first.size() > 1 ? spec.first.front() : 0;
    const std::size_t first_column = spec.first.empty() ? 0 : spec.first.back(), my_rows = tensor.count / my_columns;
    for (std::size_t row = 0; row < std::min(rows, first_row + my_rows); ++row)
      for (std::size_t column = 0; column < columns; ++column) {
        const auto value = static_cast<float>(deviation * normal(engine));
        if (row >= first_row && column >= first_column && column < first_column + my_columns)
          mine[(row - first_row) * my_columns + column - first_column] = value;
      }
  }
}

std::uint64_t hash_bits(std::span<const float> values) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const float value : values) hash = (hash ^ std::bit_cast<std::uint32_t>(value)) * 0x100000001b3;
  return hash;
}

}  // namespace shoal::train
