// SPDX-License-Identifier: Apache-2.0
// A 3 x 3 convolution with a border of zeros: (side, side, in) to (side, side, out). Tensors: weight (out, 3, 3, in), bias (out).
// As a matrix product: every position becomes a row of its 9 * in neighbours (im2col), block of samples by block, so that the
// rows stay in the cache; backward unfolds again rather than keep them. One thread at a time.
#pragma once

#include <string>

#include "train/nn/layer.h"

namespace shoal::train {

class Conv3x3 final : public Layer {
 public:
  // `starts`: false: weights of zero at first, for the end of a residual branch, which then begins as nothing (Goyal et al.
  // 2017).
  Conv3x3(std::string name, std::size_t side, std::size_t in, std::size_t out, bool starts = true);

  std::size_t input_size() const override { return side_ * side_ * in_; }
  std::size_t output_size() const override { return side_ * side_ * out_; }
  std::vector<TensorSpec> tensors() const override;
  void bind(std::span<float> values, std::span<float> gradients) override;
  void forward(std::size_t samples, std::span<const float> input, std::span<float> output) override;
  void backward(std::size_t samples, const Pass& pass, std::span<float> input_gradient) override;

 private:
  std::size_t patch() const { return 9 * in_; }
  bool starts_;
  // `count` images into (count * side * side, patch) rows of patches_, and the sum of such rows back into images.
  std::span<float> unfold(std::size_t count, std::span<const float> images);
  void fold(std::size_t count, std::span<const float> patches, std::span<float> images) const;

  std::string name_;
  std::size_t side_;
  std::size_t in_;
  std::size_t out_;
  std::vector<float> patches_;         // kSampleBlock images unfolded
  std::vector<float> block_gradient_;  // of the weight, or of the bias
  std::span<float> weight_, bias_, weight_gradient_, bias_gradient_;
};

}  // namespace shoal::train
