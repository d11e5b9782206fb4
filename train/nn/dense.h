// SPDX-License-Identifier: Apache-2.0
// y = x W^T + b. Tensors: weight (outputs, inputs), bias (outputs). One thread at a time.
#pragma once

#include <string>

#include "train/nn/layer.h"

namespace shoal::train {

class Dense final : public Layer {
 public:
  Dense(std::string name, std::size_t inputs, std::size_t outputs);

  std::size_t input_size() const override { return inputs_; }
  std::size_t output_size() const override { return outputs_; }
  std::vector<TensorSpec> tensors() const override;
  void bind(std::span<float> values, std::span<float> gradients) override;
  void forward(std::size_t samples, std::span<const float> input, std::span<float> output) override;
  void backward(std::size_t samples, const Pass& pass, std::span<float> input_gradient) override;

 private:
  void add_parameter_gradients(std::size_t count, std::span<const float> input, std::span<const float> output_gradient);

  std::string name_;
  std::size_t inputs_;
  std::size_t outputs_;
  std::vector<float> block_gradient_;  // of kTile rows of the weight, or of the bias
  std::span<float> weight_, bias_, weight_gradient_, bias_gradient_;
};

}  // namespace shoal::train
