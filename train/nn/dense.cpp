// SPDX-License-Identifier: Apache-2.0
#include "train/nn/dense.h"

#include "train/nn/gemm.h"
#include "train/nn/rowwise.h"

namespace shoal::train {
namespace {

// Rows of the weight whose gradient is computed at a time: it is added up while it lies in the cache.
constexpr std::size_t kTile = 32;

}  // namespace

Dense::Dense(std::string name, std::size_t inputs, std::size_t outputs)
    : name_(std::move(name)), inputs_(inputs), outputs_(outputs), block_gradient_(std::max(kTile * inputs, outputs)) {}

std::vector<TensorSpec> Dense::tensors() const {
  return {{.name = name_ + ".weight", .shape = {outputs_, inputs_}, .fan_in = inputs_},
          {.name = name_ + ".bias", .shape = {outputs_}}};
}

void Dense::bind(std::span<float> values, std::span<float> gradients) {
  const std::size_t weights = outputs_ * inputs_;
  weight_ = values.first(weights);
  bias_ = values.subspan(weights);
  weight_gradient_ = gradients.first(weights);
  bias_gradient_ = gradients.subspan(weights);
}

void Dense::forward(std::size_t samples, std::span<const float> input, std::span<float> output) {
  fill_rows(bias_, output);
  for_each_block(samples, [&](std::size_t first, std::size_t count) {
    gemm({rows(input, inputs_, first, count), count, inputs_}, transpose({weight_, outputs_, inputs_}), Into::add,
         rows(output, outputs_, first, count));
  });
}

void Dense::backward(std::size_t samples, const Pass& pass, std::span<float> input_gradient) {
  for_each_block(samples, [&](std::size_t first, std::size_t count) {
    const auto dy = rows(pass.output_gradient, outputs_, first, count);
    add_parameter_gradients(count, rows(pass.input, inputs_, first, count), dy);
    if (input_gradient.empty()) return;
    gemm({dy, count, outputs_}, {weight_, outputs_, inputs_}, Into::overwrite, rows(input_gradient, inputs_, first, count));
  });
}

void Dense::add_parameter_gradients(std::size_t count, std::span<const float> input, std::span<const float> output_gradient) {
  const Matrix x(input, count, inputs_), dy(output_gradient, count, outputs_);
  for (std::size_t row = 0; row < outputs_; row += kTile) {
    const std::size_t height = std::min(kTile, outputs_ - row);
    const auto tile = std::span(block_gradient_).first(height * inputs_);
    gemm(transpose(dy.columns_from(row, height)), x, Into::overwrite, tile);
    add_block(tile, rows(weight_gradient_, inputs_, row, height));
  }
  const auto bias = std::span(block_gradient_).first(outputs_);
  column_sums(output_gradient, bias);
  add_block(bias, bias_gradient_);
}

}  // namespace shoal::train
