// SPDX-License-Identifier: Apache-2.0
#include "train/local_model.h"

#include <algorithm>

#include "train/nn/bf16.h"

namespace shoal::train {

LocalModel::LocalModel(const TextRecipe& recipe, TensorGroup& group, Attention& attention, Ledger& ledger)
    : bf16_(recipe.bf16),
      optimizer_(recipe.optimizer),
      group_(group),
      ledger_(ledger),
      model_(recipe.shape, group, attention, recipe.seed),
      masters_(recipe.bf16 ? std::vector<float>(model_.values().begin(), model_.values().end()) : std::vector<float>()),
      first_(model_.values().size()),
      second_(recipe.optimizer.moments() > 1 ? first_.size() : 0) {
  ledger.hold(Holds::parameters, model_.values().size_bytes());
  ledger.hold(Holds::gradients, model_.gradients().size_bytes());
  ledger.hold(Holds::optimizer, sizeof(float) * (masters_.size() + first_.size() + second_.size()));
  round();
}

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

void LocalModel::update(std::size_t number, float rate) {
  if (bf16_)
    for (float& each : model_.gradients()) each = to_float(to_bf16(each));
  for (Piece& each : pieces()) optimizer_.update(number, rate, each.decays, each.gradients, each.values, each.first, each.second);
  round();
}

std::vector<Piece> LocalModel::pieces() {
  std::vector<Piece> all;
  const std::span<float> values = bf16_ ? std::span(masters_) : model_.values();
  for (const Tensor& each : model_.tensors()) all.push_back(whole_piece(each, values, model_.gradients(), first_, second_));
  return all;
}

void LocalModel::round() {
  for (std::size_t i = 0; i < masters_.size(); ++i) model_.values()[i] = to_float(to_bf16(masters_[i]));
}

}  // namespace shoal::train
