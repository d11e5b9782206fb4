// SPDX-License-Identifier: Apache-2.0
// y = max(x, 0), value by value. No parameters. One thread at a time.
#pragma once

#include "train/nn/layer.h"

namespace shoal::train {

class Relu final : public Layer {
 public:
  explicit Relu(std::size_t size) : size_(size) {}

  std::size_t input_size() const override { return size_; }
  std::size_t output_size() const override { return size_; }
  std::vector<TensorSpec> tensors() const override { return {}; }
  void bind(std::span<float>, std::span<float>) override {}

  void forward(std::size_t, std::span<const float> input, std::span<float> output) override {
    std::ranges::transform(input, output.begin(), [](float x) { return x > 0.0F ? x : 0.0F; });
  }
  void backward(std::size_t, const Pass& pass, std::span<float> input_gradient) override {
    for (std::size_t i = 0; i < input_gradient.size(); ++i)
      input_gradient[i] = pass.output[i] > 0.0F ? pass.output_gradient[i] : 0.0F;
  }

 private:
  std::size_t size_;
};

}  // namespace shoal::train
