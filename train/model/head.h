// SPDX-License-Identifier: Apache-2.0
// The last unit: logits = table norm(x), and their cross entropy. A rank of a tensor group holds a range of the vocabulary, and
// no rank ever has a whole row of logits. The table is the unit's own, or tied to an embedding's.
#pragma once

#include "train/model/gpt_shape.h"
#include "train/model/tensor_group.h"
#include "train/model/unit.h"
#include "train/nn/layer_norm.h"
#include "train/nn/linear.h"

namespace shoal::train {

class Head final : public Unit {
 public:
  // Where the table is: a tensor "head.weight" of this unit; a tensor of this unit that is a copy of "embedding.weight", which
  // whoever runs both keeps equal by adding up their gradients; or the embedding's own memory, see tie().
  enum class Table : std::uint8_t { own, copy, shared };
  Head(const GptShape& shape, TensorGroup& group, Table table);

  std::vector<TensorSpec> tensors() const override;
  void bind(std::span<float> values, std::span<float> gradients) override;
  void tie(std::span<float> table, std::span<float> gradient);  // for Table::shared; before or after bind

  // The sum of the losses of the last forward's targets. The same on all ranks of the tensor group.
  double loss() const { return loss_; }

  std::size_t stash_size(const TokenBatch& batch) const override;
  void forward(const TokenBatch& batch, std::span<const float> x, std::span<float> y, std::span<float> stash) override;
  void backward_input(const TokenBatch& batch, std::span<const float> x, std::span<float> dy, std::span<float> dx,
                      std::span<float> stash) override;
  void backward_parameters(const TokenBatch& batch, std::span<float> stash) override;

 private:
  struct Stash;
  Stash lay_out(const TokenBatch& batch, std::span<float> memory) const;

  GptShape shape_;
  TensorGroup& group_;
  Table where_;
  std::size_t rows_;  // of the vocabulary, here
  LayerNorm norm_;
  Linear linear_;
  std::span<float> gain_, bias_, gain_gradient_, bias_gradient_, table_, table_gradient_;
  std::vector<float> partial_, room_, numbers_;
  double loss_ = 0;
};

}  // namespace shoal::train
