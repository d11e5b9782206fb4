// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "train/local_model.h"
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

TokenBatch whole_batch(const TextSample& sample, std::span<const Place> places) {
  return sequences_of(sample, 0, sample.sequences, places, 1 / static_cast<float>(sample.targets.size()));
}

std::vector<Place> places_in_order(std::size_t length) {
  std::vector<Place> places(length);
  for (std::size_t t = 0; t < length; ++t) places[t].position = static_cast<std::int32_t>(t);
  return places;
}

TextSample with_rows_for(TextSample sample, std::size_t world) {
  while (sample.sequences * sample.length % world != 0) {
    ++sample.sequences;
    sample.inputs.resize(sample.inputs.size() + sample.length);
    sample.targets.resize(sample.targets.size() + sample.length, kNoTarget);
  }
  return sample;
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
      : model_(recipe, group_, attention_, ledger_), places_(places_in_order(recipe.length)) {}

  double step(const TextSample& batch, std::size_t number, float rate) override {
    const double loss = model_.gradients_of(whole_batch(batch, places_));
    model_.update(number, rate);
    return loss / static_cast<double>(batch.targets.size());
  }

  double evaluate(const TextSample& batch) override {
    return model_.evaluate(whole_batch(batch, places_)) / static_cast<double>(batch.targets.size());
  }

  std::vector<Piece> pieces() override { return model_.pieces(); }
  void reloaded() override { model_.round(); }
  const Ledger& ledger() const override { return ledger_; }

 private:
  TensorGroup group_;
  LocalAttention attention_;
  Ledger ledger_;
  LocalModel model_;
  std::vector<Place> places_;
};

}  // namespace

std::unique_ptr<TextDriver> make_one_process(const TextRecipe& recipe) { return std::make_unique<OneProcess>(recipe); }

}  // namespace shoal::train
