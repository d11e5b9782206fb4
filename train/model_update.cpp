// SPDX-License-Identifier: Apache-2.0
#include "train/model_update.h"

#include "train/nn/bf16.h"

namespace shoal::train {

ModelUpdate::ModelUpdate(Gpt& model, const TextRecipe& recipe, Ledger& ledger)
    : model_(model),
      bf16_(recipe.bf16),
      optimizer_(recipe.optimizer),
      clip_(recipe.clip),
      freeze_(recipe.freeze),
      masters_(recipe.bf16 ? std::vector<float>(model.values().begin(), model.values().end()) : std::vector<float>()),
      first_(model.values().size()),
      second_(recipe.optimizer.moments() > 1 ? first_.size() : 0) {
  ledger.hold(Holds::parameters, model.values().size_bytes());
  ledger.hold(Holds::gradients, model.gradients().size_bytes());
  ledger.hold(Holds::optimizer, sizeof(float) * (masters_.size() + first_.size() + second_.size()));
  round();
}

void ModelUpdate::update(std::size_t number, float rate) {
  if (bf16_)
    for (float& each : model_.gradients()) each = to_float(to_bf16(each));
  std::vector<Piece> trained = pieces();
  std::erase_if(trained, [&](const Piece& each) { return freeze_.holds(each.name, number); });
  double squares = 0;
  for (const Piece& each : trained) squares += sum_of_squares(each.gradients);
  scale(clip_factor(squares, clip_), model_.gradients());
  for (Piece& each : trained) optimizer_.update(number, rate, each.decays, each.gradients, each.values, each.first, each.second);
  round();
}

std::vector<Piece> ModelUpdate::pieces() {
  std::vector<Piece> all;
  const std::span<float> values = bf16_ ? std::span(masters_) : model_.values();
  for (const Tensor& each : model_.tensors()) all.push_back(whole_piece(each, values, model_.gradients(), first_, second_));
  return all;
}

void ModelUpdate::round() {
  for (std::size_t i = 0; i < masters_.size(); ++i) model_.values()[i] = to_float(to_bf16(masters_[i]));
}

}  // namespace shoal::train
