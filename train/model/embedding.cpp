// SPDX-License-Identifier: Apache-2.0
#include "train/model/embedding.h"

#include <algorithm>
#include <cmath>

namespace shoal::train {
namespace {

// Values of the position's vector: sin and cos of position / 10000^(2i / width), alternating.
void add_sinusoid(std::int32_t position, std::span<float> vector) {
  const auto width = static_cast<double>(vector.size());
  for (std::size_t i = 0; i < vector.size(); ++i) {
    const double angle = position * std::pow(1e4, -static_cast<double>(i / 2 * 2) / width);
    vector[i] += static_cast<float>(i % 2 == 0 ? std::sin(angle) : std::cos(angle));
  }
}

}  // namespace

TensorSpec vocabulary_part(const char* name, const GptShape& shape, const TensorGroup& group) {
  const std::size_t rows = shape.vocabulary / group.world();
  return {.name = name,
          .shape = {rows, shape.width},
          .fan_in = shape.width,
          .whole = {shape.vocabulary, shape.width},
          .first = {rows * group.rank(), 0}};
}

Embedding::Embedding(const GptShape& shape, TensorGroup& group)
    : shape_(shape), group_(group), rows_(shape.vocabulary / group.world()), first_(rows_ * group.rank()) {}

std::vector<TensorSpec> Embedding::tensors() const { return {vocabulary_part("embedding.weight", shape_, group_)}; }

void Embedding::bind(std::span<float> values, std::span<float> gradients) {
  table_ = values;
  table_gradient_ = gradients;
}

std::size_t Embedding::stash_size(const TokenBatch& batch) const { return batch.rows() * shape_.width; }  // dy, whole

void Embedding::forward(const TokenBatch& batch, std::span<const float>, std::span<float> y, std::span<float>) {
  const std::size_t width = shape_.width;
  const auto scale = std::sqrt(static_cast<float>(width));
  partial_.assign(batch.rows() * width, 0.0F);
  for (std::size_t row = 0; row < batch.rows(); ++row) {
    const std::size_t at = std::size_t{batch.inputs[row]} - first_;  // wraps around for a token before the range
    if (at >= rows_) continue;
    for (std::size_t i = 0; i < width; ++i) partial_[row * width + i] = scale * table_[at * width + i];
  }
  room_.resize(y.size());
  std::ranges::copy(group_.leave(partial_, room_), y.begin());
  const std::size_t first_row = group_.my_first_row(batch.rows());
  for (std::size_t row = 0; row < y.size() / width; ++row) {
    const Place place = batch.places[(first_row + row) % batch.tokens()];
    if (place.document >= 0) add_sinusoid(place.position, y.subspan(row * width, width));
  }
}

void Embedding::backward_input(const TokenBatch&, std::span<const float>, std::span<float> dy, std::span<float>,
                               std::span<float> stash) {
  room_.resize(stash.size());
  std::ranges::copy(group_.leave_backward(dy, room_), stash.begin());
}

void Embedding::backward_parameters(const TokenBatch& batch, std::span<float> stash) {
  const std::size_t width = shape_.width;
  const auto scale = std::sqrt(static_cast<float>(width));
  for (std::size_t row = 0; row < batch.rows(); ++row) {
    const std::size_t at = std::size_t{batch.inputs[row]} - first_;
    if (at >= rows_) continue;
    for (std::size_t i = 0; i < width; ++i) table_gradient_[at * width + i] += scale * stash[row * width + i];
  }
}

}  // namespace shoal::train
