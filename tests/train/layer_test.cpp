// SPDX-License-Identifier: Apache-2.0
// Every layer's derivative against finite differences. The loss is the output weighted by fixed random factors. Layers are linear
// or piecewise linear in each single value, so that a central difference has no truncation error: what remains is rounding.
#include "train/nn/layer.h"

#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <random>

#include "train/nn/conv3x3.h"
#include "train/nn/dense.h"
#include "train/nn/max_pool.h"
#include "train/nn/relu.h"
#include "train/nn/softmax.h"

namespace shoal::train {
namespace {

using Values = std::vector<float>;

constexpr float kNudge = 0x1p-5F;
constexpr double kMargin = 2e-4;  // outputs up to 8 with 2^-22 of rounding, over a difference of 2^-4

Values random_values(std::size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> draw(-1.0F, 1.0F);
  Values values(count);
  std::ranges::generate(values, [&] { return draw(engine); });
  return values;
}

// Distinct values at least four nudges apart, none near zero: no nudge crosses a kink of ReLU or max.
Values separated_values(std::size_t count, unsigned seed) {
  Values values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = (static_cast<float>(i) - static_cast<float>(count) / 2 + 0.25F) * 4 * kNudge;
  }
  std::shuffle(values.begin(), values.end(), std::mt19937(seed));
  return values;
}

struct Harness {
  Harness(std::unique_ptr<Layer> made, std::size_t count, Values in)
      : layer(std::move(made)), samples(count), input(std::move(in)) {
    std::size_t parameters = 0;
    for (const TensorSpec& spec : layer->tensors()) parameters += elements(spec);
    values = random_values(parameters, 1);
    gradients.resize(parameters);
    layer->bind(values, gradients);
    factors = random_values(samples * layer->output_size(), 2);
    output.resize(factors.size());
    input_gradient.resize(input.size());
    layer->forward(samples, input, output);
    layer->backward(samples, {.input = input, .output = output, .output_gradient = factors}, input_gradient);
  }

  double loss() {
    Values out(output.size());
    layer->forward(samples, input, out);
    double sum = 0;
    for (std::size_t i = 0; i < out.size(); ++i) sum += static_cast<double>(out[i]) * static_cast<double>(factors[i]);
    return sum;
  }

  void check(Values& place, const Values& claimed) {
    for (std::size_t i = 0; i < place.size(); ++i) {
      const float kept = place[i];
      place[i] = kept + kNudge;
      const double above = loss();
      place[i] = kept - kNudge;
      const double below = loss();
      place[i] = kept;
      INFO("value " << i << " of " << place.size());
      CHECK(static_cast<double>(claimed[i]) == Approx((above - below) / (2.0 * static_cast<double>(kNudge))).margin(kMargin));
    }
  }

  std::unique_ptr<Layer> layer;
  std::size_t samples;
  Values input, values, gradients, factors, output, input_gradient;
};

void check_derivatives(std::unique_ptr<Layer> layer, std::size_t samples, Values input) {
  Harness harness(std::move(layer), samples, std::move(input));
  harness.check(harness.values, harness.gradients);
  harness.check(harness.input, harness.input_gradient);
}

TEST_CASE("layers: dense has the derivative of finite differences, in whole and short blocks") {
  for (const std::size_t samples : {std::size_t{1}, kSampleBlock, 2 * kSampleBlock + 3}) {
    check_derivatives(std::make_unique<Dense>("d", 7, 5), samples, random_values(samples * 7, 3));
  }
}

TEST_CASE("layers: dense with more outputs than a tile adds every row once") {
  check_derivatives(std::make_unique<Dense>("d", 3, 67), 2, random_values(6, 3));
}

TEST_CASE("layers: a convolution has the derivative of finite differences, borders included") {
  check_derivatives(std::make_unique<Conv3x3>("c", 4, 2, 3), 3, random_values(std::size_t{3} * 4 * 4 * 2, 3));
  check_derivatives(std::make_unique<Conv3x3>("c", 2, 1, 2), kSampleBlock + 1, random_values((kSampleBlock + 1) * 4, 4));
  check_derivatives(std::make_unique<Conv3x3>("c", 1, 3, 2), 2, random_values(6, 5));
}

TEST_CASE("layers: ReLU has the derivative of finite differences") {
  check_derivatives(std::make_unique<Relu>(6), 3, separated_values(18, 3));
}

TEST_CASE("layers: max pooling has the derivative of finite differences") {
  check_derivatives(std::make_unique<MaxPool>(4, 3), 2, separated_values(std::size_t{2} * 4 * 4 * 3, 3));
}

TEST_CASE("layers: max pooling gives the gradient of equal values to the first alone") {
  MaxPool pool(2, 1);
  const Values input{5, 5, 5, 5}, factor{2};
  Values output(1), gradient(4, -1.0F);
  pool.forward(1, input, output);
  pool.backward(1, {.input = input, .output = output, .output_gradient = factor}, gradient);
  CHECK(output == Values{5});
  CHECK(gradient == Values{2, 0, 0, 0});
}

TEST_CASE("layers: a convolution of one image equals the sum done by hand") {
  Conv3x3 conv("c", 3, 1, 1);
  Values values{1, 2, 3, 4, 5, 6, 7, 8, 9, 100}, gradients(10), output(9);
  conv.bind(values, gradients);
  conv.forward(1, Values{1, 0, 0, 0, 0, 0, 0, 0, 2}, output);
  CHECK(output == Values{105, 104, 100, 102, 101 + 18, 100 + 16, 100, 100 + 12, 100 + 10});
}

TEST_CASE("layers: cross entropy has the derivative of finite differences") {
  const std::vector<std::uint8_t> labels{0, 2, 1};
  Values logits = random_values(12, 3), gradient(12);
  cross_entropy(logits, labels, 0.5, gradient);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const float kept = logits[i];
    logits[i] = kept + 0x1p-8F;
    const double above = cross_entropy(logits, labels, 0, {}).loss;
    logits[i] = kept - 0x1p-8F;
    const double below = cross_entropy(logits, labels, 0, {}).loss;
    logits[i] = kept;
    CHECK(static_cast<double>(gradient[i]) == Approx(0.5 * (above - below) * 0x1p7).margin(1e-4));
  }
}

TEST_CASE("layers: cross entropy counts, sums, and survives huge logits") {
  const Values logits{1000, 0, 0, -1000};
  const Score score = cross_entropy(logits, std::vector<std::uint8_t>{0, 1}, 0, {});
  CHECK(score.samples == 2);
  CHECK(score.correct == 1);
  CHECK(score.loss == Approx(1000));
  const Score even = cross_entropy(Values{3, 3, 3, 3}, std::vector<std::uint8_t>{0}, 0, {});
  CHECK(even.loss == Approx(std::log(4.0)));
  CHECK(even.correct == 1);
  CHECK(cross_entropy({}, {}, 0, {}).samples == 0);
}

}  // namespace
}  // namespace shoal::train
