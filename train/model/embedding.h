// SPDX-License-Identifier: Apache-2.0
// The first unit: y = sqrt(width) table[token] + sinusoid(position). A rank of a tensor group holds a range of the table's rows
// and contributes zeros for the other tokens.
#pragma once

#include "train/model/gpt_shape.h"
#include "train/model/tensor_group.h"
#include "train/model/unit.h"

namespace shoal::train {

class Embedding final : public Unit {
 public:
  Embedding(const GptShape& shape, TensorGroup& group);

  std::vector<TensorSpec> tensors() const override;
  void bind(std::span<float> values, std::span<float> gradients) override;
  std::size_t stash_size(const TokenBatch& batch) const override;
  std::size_t kept_size(const TokenBatch&) const override { return 0; }  // the input is the batch's
  void forward(const TokenBatch& batch, std::span<const float> x, std::span<float> y, std::span<float> stash) override;
  void backward_input(const TokenBatch& batch, std::span<const float> x, std::span<float> dy, std::span<float> dx,
                      std::span<float> stash) override;
  void backward_parameters(const TokenBatch& batch, std::span<float> stash) override;

 private:
  GptShape shape_;
  TensorGroup& group_;
  std::size_t rows_, first_;  // of the vocabulary, here
  std::span<float> table_, table_gradient_;
  std::vector<float> partial_, room_;
};

// A table of `rows` of the vocabulary's `shape.vocabulary`, for an embedding or a head.
TensorSpec vocabulary_part(const char* name, const GptShape& shape, const TensorGroup& group);

}  // namespace shoal::train
