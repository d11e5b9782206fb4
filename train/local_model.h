// SPDX-License-Identifier: Apache-2.0
// The transformer as far as one rank has it, with what its optimiser needs: every parameter that is here is updated here, whole.
// For the run in one process, and for schemes that split matrices or sequences but not the optimiser. One thread.
#pragma once

#include <vector>

#include "train/model_update.h"
#include "train/text_driver.h"

namespace shoal::train {

class LocalModel {
 public:
  // What is referenced outlives this. The ledger is told what is held.
  LocalModel(const TextRecipe& recipe, TensorGroup& group, Attention& attention, Ledger& ledger);

  // Forward and backward of one batch; gradients begin at 0. The sum of the losses.
  double gradients_of(const TokenBatch& batch);
  double evaluate(const TokenBatch& batch) { return model_.evaluate(batch); }
  std::span<float> gradients() { return model_.gradients(); }
  std::span<const Tensor> tensors() const { return model_.tensors(); }

  void update(std::size_t number, float rate) { update_.update(number, rate); }
  std::vector<Piece> pieces() { return update_.pieces(); }
  void round() { update_.round(); }

 private:
  TensorGroup& group_;
  Ledger& ledger_;
  Gpt model_;
  ModelUpdate update_;
};

}  // namespace shoal::train
