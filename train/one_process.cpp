// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "train/nn/bf16.h"
#include "train/text_driver.h"

namespace shoal::train {

TokenBatch sequences_of(const TextSample& sample, std::size_t first, std::size_t count, std::span<const Place> places,
                        float weight) {
  return {.sequences = count,
          .places = places,
          .inputs = std::span(sample.inputs).subspan(first * sample.length, count * sample.length),
          .targets = std::span(sample.targets).subspan(first * sample.length, count * sample.length),
          .weight = weight};
}

std::vector<Place> places_in_order(std::size_t length) {
  std::vector<Place> places(length);
  for (std::size_t t = 0; t < length; ++t) places[t].position = static_cast<std::int32_t>(t);
  return places;
}

Sequences sequences_for(std::size_t sequences, Seat seat) {
  const std::size_t least = sequences / seat.world, longer = sequences % seat.world;
  return {seat.rank * least + std::min(seat.rank, longer), least + (seat.rank < longer ? 1 : 0)};
}

bool Freeze::holds(std::string_view tensor, std::size_t step) const {
  return step >= from && std::ranges::find(units, tensor.substr(0, tensor.find('.'))) != units.end();
}

namespace {

class OneProcess final : public TextDriver {
 public:
  explicit OneProcess(const TextRecipe& recipe)
      : recipe_(recipe),
        model_(recipe.shape, group_, attention_, recipe.seed),
        places_(places_in_order(recipe.length)),
        masters_(recipe.bf16 ? std::vector<float>(model_.values().begin(), model_.values().end()) : std::vector<float>()),
        first_(model_.values().size()),
        second_(recipe.optimizer.moments() > 1 ? first_.size() : 0) {
    round();
  }

  double step(const TextSample& batch, std::size_t number, float rate) override {
    std::ranges::fill(model_.gradients(), 0.0F);
    const double loss = model_.forward_backward(whole(batch));
    if (recipe_.bf16)
      for (float& each : model_.gradients()) each = to_float(to_bf16(each));
    std::vector<Piece> trained = pieces();
    std::erase_if(trained, [&](const Piece& each) { return recipe_.freeze.holds(each.name, number); });
    double squares = 0;
    for (const Piece& each : trained) squares += sum_of_squares(each.gradients);
    scale(clip_factor(squares, recipe_.clip), model_.gradients());
    for (Piece& each : trained)
      recipe_.optimizer.update(number, rate, each.decays, each.gradients, each.values, each.first, each.second);
    round();
    return loss / static_cast<double>(batch.targets.size());
  }

  double evaluate(const TextSample& batch) override {
    return model_.evaluate(whole(batch)) / static_cast<double>(batch.targets.size());
  }

  std::vector<Piece> pieces() override {
    std::vector<Piece> all;
    const std::span<float> values = recipe_.bf16 ? std::span(masters_) : model_.values();
    for (const Tensor& each : model_.tensors()) all.push_back(whole_piece(each, values, model_.gradients(), first_, second_));
    return all;
  }

  void reloaded() override { round(); }
  const Ledger& ledger() const override { return ledger_; }

 private:
  TokenBatch whole(const TextSample& batch) const {
    return sequences_of(batch, 0, batch.sequences, places_, 1 / static_cast<float>(batch.targets.size()));
  }
  // The weights that are computed with.
  void round() {
    for (std::size_t i = 0; i < masters_.size(); ++i) model_.values()[i] = to_float(to_bf16(masters_[i]));
  }

  TextRecipe recipe_;
  TensorGroup group_;
  LocalAttention attention_;
  Gpt model_;
  std::vector<Place> places_;
  std::vector<float> masters_;  // with bf16
  std::vector<float> first_, second_;
  Ledger ledger_;
};

}  // namespace

std::unique_ptr<TextDriver> make_one_process(const TextRecipe& recipe) { return std::make_unique<OneProcess>(recipe); }

}  // namespace shoal::train
