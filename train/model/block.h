// SPDX-License-Identifier: Apache-2.0
// A pre-norm transformer block: r = x + P attention(Q, K, V of norm1(x)), y = r + F2 gelu(F1 norm2(r)). In a tensor group Q, K, V
// and F1 are split by columns (whole heads, a range of the hidden layer), P and F2 by rows; norms and the biases after P and F2
// are on every rank.
#pragma once

#include <string>

#include "train/model/attention_kind.h"
#include "train/model/gpt_shape.h"
#include "train/model/tensor_group.h"
#include "train/model/unit.h"
#include "train/nn/layer_norm.h"
#include "train/nn/linear.h"

namespace shoal::train {

class Block final : public Unit {
 public:
  // What is referenced outlives this. `number`: from 0, for the tensors' names.
  Block(const GptShape& shape, std::size_t number, TensorGroup& group, Attention& attention);

  std::vector<TensorSpec> tensors() const override;
  void bind(std::span<float> values, std::span<float> gradients) override;
  std::size_t stash_size(const TokenBatch& batch) const override;
  std::size_t kept_size(const TokenBatch& batch) const override;
  void forward(const TokenBatch& batch, std::span<const float> x, std::span<float> y, std::span<float> stash) override;
  void backward_input(const TokenBatch& batch, std::span<const float> x, std::span<float> dy, std::span<float> dx,
                      std::span<float> stash) override;
  void backward_parameters(const TokenBatch& batch, std::span<float> stash) override;

 private:
  struct Parameters {
    std::span<float> norm1_gain, norm1_bias, qkv, qkv_bias, proj, proj_bias, norm2_gain, norm2_bias, fc1, fc1_bias, fc2, fc2_bias;
  };
  struct Stash;  // named pieces of the stash

  Parameters cut(std::span<float> arena) const;
  Stash lay_out(const TokenBatch& batch, std::span<float> memory) const;
  AttentionSize attention_size(const TokenBatch& batch) const;
  std::span<float> room(std::vector<float>& memory, std::size_t size);

  GptShape shape_;
  std::string name_;
  TensorGroup& group_;
  Attention& attention_;
  std::size_t heads_, width_, hidden_;  // here: heads, their values, values of the hidden layer
  LayerNorm norm_;
  Linear qkv_, proj_, fc1_, fc2_;
  Parameters values_, gradients_;
  std::vector<float> partial_, room_, flowing_;  // working memory of a call
};

}  // namespace shoal::train
