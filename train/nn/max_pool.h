// SPDX-License-Identifier: Apache-2.0
// The largest of every 2 x 2 square, channel by channel: (side, side, channels) to (side/2, side/2, channels); side is even. The
// gradient goes to the first of equal values, in reading order. No parameters. One thread at a time.
#pragma once

#include "train/nn/layer.h"

namespace shoal::train {

class MaxPool final : public Layer {
 public:
  MaxPool(std::size_t side, std::size_t channels) : side_(side), channels_(channels) {}

  std::size_t input_size() const override { return side_ * side_ * channels_; }
  std::size_t output_size() const override { return input_size() / 4; }
  std::vector<TensorSpec> tensors() const override { return {}; }
  void bind(std::span<float>, std::span<float>) override {}
  void forward(std::size_t samples, std::span<const float> input, std::span<float> output) override;
  void backward(std::size_t samples, const Pass& pass, std::span<float> input_gradient) override;

 private:
  std::size_t side_;
  std::size_t channels_;
};

}  // namespace shoal::train
