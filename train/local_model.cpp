// SPDX-License-Identifier: Apache-2.0
#include "train/local_model.h"

#include <algorithm>

namespace shoal::train {

LocalModel::LocalModel(const TextRecipe& recipe, TensorGroup& group, Attention& attention, Ledger& ledger)
    : group_(group), ledger_(ledger), model_(recipe.shape, group, attention, recipe.seed), update_(model_, recipe, ledger) {}

double LocalModel::gradients_of(const TokenBatch& batch) {
  // Of each unit what it keeps for backward and its output; the rest of its stash is backward's working memory.
  std::size_t kept = 0, working = 0;
  for (std::size_t u = 0; u < model_.range().count(); ++u) {
    const Unit& unit = model_.unit(u);
    kept += unit.kept_size(batch);
    working += unit.stash_size(batch) - unit.kept_size(batch);
    if (u + 1 < model_.range().count()) kept += group_.my_rows(batch.rows()) * model_.shape().width;
  }
  ledger_.hold(Holds::activations, kept * sizeof(float));
  ledger_.hold(Holds::working, working * sizeof(float));
  std::ranges::fill(model_.gradients(), 0.0F);
  const double loss = model_.forward_backward(batch);
  ledger_.release(Holds::activations, kept * sizeof(float));
  ledger_.release(Holds::working, working * sizeof(float));
  return loss;
}

}  // namespace shoal::train
