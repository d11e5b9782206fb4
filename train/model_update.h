// SPDX-License-Identifier: Apache-2.0
// What the optimiser has of a model, or a part of one, whose parameters are all updated where they are: moments, and with bf16
// the float32 masters of which the model computes with the rounded values. One thread.
#pragma once

#include <vector>

#include "train/text_driver.h"

namespace shoal::train {

class ModelUpdate {
 public:
  // The model outlives this. The ledger is told what is held: parameters, gradients, optimiser.
  ModelUpdate(Gpt& model, const TextRecipe& recipe, Ledger& ledger);

  // With final gradients; `number` of the step, from 0. A recipe's clip is that of the norm of what is here: of the model's, if
  // that is whole.
  void update(std::size_t number, float rate);
  std::vector<Piece> pieces();
  void round();  // the weights that are computed with, from the masters

 private:
  Gpt& model_;
  bool bf16_;
  Optimizer optimizer_;
  double clip_;
  Freeze freeze_;
  std::vector<float> masters_;  // with bf16
  std::vector<float> first_, second_;
};

}  // namespace shoal::train
