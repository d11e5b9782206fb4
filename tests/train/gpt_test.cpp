// SPDX-License-Identifier: Apache-2.0
// The transformer's derivative against central differences, along random directions of each tensor; what sharing a table adds up
// to.
#include "train/model/gpt.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "train/text_driver.h"

namespace shoal::train {
namespace {

TextSample random_text(std::size_t sequences, std::size_t length, std::size_t vocabulary) {
  std::mt19937 engine(7);
  TextSample sample{.sequences = sequences, .length = length};
  for (std::size_t i = 0; i < sequences * length; ++i) {
    sample.inputs.push_back(static_cast<Token>(engine() % vocabulary));
    sample.targets.push_back(static_cast<std::int32_t>(engine() % vocabulary));
  }
  sample.targets[1] = kNoTarget;
  return sample;
}

}  // namespace

TEST_CASE("transformer: gradients are those of central differences, tied or not") {
  const bool tied = GENERATE(false, true);
  CAPTURE(tied);
  const GptShape shape{.vocabulary = 11, .width = 8, .heads = 2, .layers = 2, .hidden = 12, .tied = tied};
  TensorGroup alone;
  LocalAttention attention;
  Gpt model(shape, alone, attention, 3);
  CHECK(model.values().size() == parameters_of(shape));
  const TextSample sample = random_text(3, 6, shape.vocabulary);
  const std::vector<Place> places = places_in_order(6);
  const TokenBatch batch = sequences_of(sample, 0, 3, places, 1);
  model.forward_backward(batch);
  const std::vector<float> gradient(model.gradients().begin(), model.gradients().end());

  std::mt19937 engine(5);
  std::normal_distribution<float> draw;
  for (const Tensor& tensor : model.tensors()) {
    INFO(tensor.spec.name);
    std::vector<float> direction(tensor.count);
    double along = 0, length = 0;
    for (float& each : direction) {
      each = draw(engine);
      length += static_cast<double>(each) * static_cast<double>(each);
    }
    for (std::size_t i = 0; i < tensor.count; ++i) {
      direction[i] /= static_cast<float>(std::sqrt(length));
      along += static_cast<double>(direction[i]) * static_cast<double>(gradient[tensor.offset + i]);
    }
    const auto values = model.values().subspan(tensor.offset, tensor.count);
    const std::vector<float> before(values.begin(), values.end());
    const auto loss_at = [&](float step) {
      for (std::size_t i = 0; i < tensor.count; ++i) values[i] = before[i] + step * direction[i];
      return model.evaluate(batch);
    };
    constexpr float kStep = 0x1p-7F;
    const double measured = (loss_at(kStep) - loss_at(-kStep)) / (2 * static_cast<double>(kStep));
    std::ranges::copy(before, values.begin());
    // The losses' sum, some 50, has rounding of 1e-5 over a difference of 2^-6; curvature adds its share.
    CHECK(along == Approx(measured).epsilon(0.01).margin(5e-3));
  }
}

TEST_CASE("transformer: a micro-batch more is a sum of gradients and losses") {
  const GptShape shape{.vocabulary = 11, .width = 8, .heads = 2, .layers = 1, .hidden = 12};
  TensorGroup alone;
  LocalAttention attention;
  Gpt whole(shape, alone, attention, 3), parts(shape, alone, attention, 3);
  const TextSample sample = random_text(5, 4, shape.vocabulary);
  const std::vector<Place> places = places_in_order(4);
  const double loss = whole.forward_backward(sequences_of(sample, 0, 5, places, 0.05F));
  const double sum = parts.forward_backward(sequences_of(sample, 0, 2, places, 0.05F)) +
                     parts.forward_backward(sequences_of(sample, 2, 3, places, 0.05F));
  CHECK(sum == Approx(loss).epsilon(1e-6));
  for (std::size_t i = 0; i < whole.gradients().size(); ++i)
    CHECK(parts.gradients()[i] == Approx(whole.gradients()[i]).margin(1e-6));
}

TEST_CASE("transformer: parts of a run have the values of the whole, a copy of a tied table too") {
  const GptShape shape{.vocabulary = 11, .width = 8, .heads = 2, .layers = 3, .hidden = 12, .tied = true};
  TensorGroup alone;
  LocalAttention attention;
  Gpt whole(shape, alone, attention, 3), first(shape, {0, 2}, alone, attention, 3), last(shape, {2, 5}, alone, attention, 3);
  CHECK(std::ranges::equal(first.values(), whole.values().first(first.values().size())));
  const std::size_t table = 11 * 8;
  CHECK(last.values().size() == whole.values().size() - first.values().size() + table);
  CHECK(std::ranges::equal(last.values().last(table), whole.values().first(table)));
}

TEST_CASE("transformer: it learns to repeat, by each optimiser, in float32 and in bf16") {
  const Rule rule = GENERATE(Rule::sgd, Rule::adam, Rule::adamw);
  const bool bf16 = GENERATE(false, true);
  TextRecipe recipe{
      .shape = {.vocabulary = 256, .width = 16, .heads = 2, .layers = 1, .hidden = 32}, .length = 8, .batch = 4, .bf16 = bf16};
  recipe.optimizer = {.rule = rule, .rate = rule == Rule::sgd ? 0.1 : 0.01};
  const auto driver = make_one_process(recipe);
  TextSample sample{.sequences = 4, .length = 8};
  for (std::size_t i = 0; i < 32; ++i) {
    sample.inputs.push_back(static_cast<Token>('a' + i % 3));
    sample.targets.push_back('a' + static_cast<std::int32_t>((i % 8 + 1 + i / 8 * 8) % 3));
  }
  const double before = driver->step(sample, 0, static_cast<float>(recipe.optimizer.rate));
  for (std::size_t step = 1; step < 60; ++step) driver->step(sample, step, static_cast<float>(recipe.optimizer.rate));
  CHECK(before > 4);
  CHECK(driver->evaluate(sample) < 0.5);
}

}  // namespace shoal::train
