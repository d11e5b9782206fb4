// SPDX-License-Identifier: Apache-2.0
// What a rank holds of a model, in terms that every way of splitting shares: a rectangle of a named tensor of the whole model. A
// run of elements that cuts through rows is a rectangle of the tensor seen as one column. Whoever compares, saves or loads a
// model works on pieces and knows no scheme. Views.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "train/nn/tensor.h"

namespace shoal::train {

struct Piece {
  std::string name;
  std::vector<std::size_t> shape;  // of the whole tensor
  std::size_t columns = 1;         // of the whole tensor as a matrix; 1: of one column
  std::size_t first_row = 0, first_column = 0, columns_here = 1;
  bool decays = false;
  // Of equal length. Empty: not here (gradients between steps, moments before the first one).
  std::span<float> values, gradients, first, second;

  // Where the i-th element is in the whole tensor.
  std::size_t index(std::size_t i) const { return (first_row + i / columns_here) * columns + first_column + i % columns_here; }
};

// The piece that a tensor of a model is, of which the spans are arenas (first, second: may be empty).
Piece whole_piece(const Tensor& tensor, std::span<float> values, std::span<float> gradients, std::span<float> first,
                  std::span<float> second);
// Elements [begin, end) of a tensor that is not split otherwise; spans are those elements.
Piece run_of(const Tensor& tensor, std::size_t begin, std::span<float> values, std::span<float> gradients, std::span<float> first,
             std::span<float> second);

// Equal for pieces of equal places. Never 0.
std::uint64_t place_key(const Piece& piece);

}  // namespace shoal::train
