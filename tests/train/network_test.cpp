// SPDX-License-Identifier: Apache-2.0
#include "train/nn/network.h"

#include <catch2/catch.hpp>
#include <stdexcept>

#include "train/nn/dense.h"
#include "train/nn/models.h"
#include "train/nn/relu.h"

namespace shoal::train {
namespace {

Network small_network(std::size_t capacity) {
  std::vector<std::unique_ptr<Layer>> layers;
  layers.push_back(std::make_unique<Dense>("a", 3, 4));
  layers.push_back(std::make_unique<Relu>(4));
  layers.push_back(std::make_unique<Dense>("b", 4, 2));
  Network network({std::move(layers)}, capacity);
  initialise(network.tensors(), 3, network.values());
  return network;
}

TEST_CASE("network: backward declares gradients ready from the last layer to the first, and they are final then") {
  Network network = small_network(5);
  std::ranges::fill(network.input(5), 0.5F);
  network.forward(5);
  const std::vector<float> output_gradient(10, 1.0F);
  std::vector<std::size_t> offsets;
  std::vector<std::vector<float>> seen;
  network.backward(5, output_gradient, [&](std::size_t offset) {
    offsets.push_back(offset);
    seen.emplace_back(network.gradients().begin() + static_cast<std::ptrdiff_t>(offset), network.gradients().end());
  });
  CHECK(offsets == std::vector<std::size_t>{16, 0});
  for (std::size_t i = 0; i < seen.size(); ++i) {
    CHECK(std::ranges::equal(seen[i], network.gradients().subspan(offsets[i])));
  }
}

TEST_CASE("network: gradients do not accumulate over steps, and no samples give zeros") {
  Network network = small_network(1);
  std::ranges::fill(network.input(1), 1.0F);
  const std::vector<float> output_gradient{1, -1};
  network.forward(1);
  network.backward(1, output_gradient, [](std::size_t) {});
  const std::vector<float> once(network.gradients().begin(), network.gradients().end());
  network.forward(1);
  network.backward(1, output_gradient, [](std::size_t) {});
  CHECK(std::ranges::equal(once, network.gradients()));
  network.forward(0);
  network.backward(0, {}, [](std::size_t) {});
  CHECK(std::ranges::all_of(network.gradients(), [](float g) { return g == 0.0F; }));
}

TEST_CASE("network: layers that do not fit each other are a programmer's error") {
  std::vector<std::unique_ptr<Layer>> layers;
  layers.push_back(std::make_unique<Dense>("a", 3, 4));
  layers.push_back(std::make_unique<Relu>(5));
  CHECK_THROWS_AS(Network({std::move(layers)}, 1), std::logic_error);
}

TEST_CASE("network: the models have the documented parameters") {
  CHECK(make_network("mlp", 1, 1).values().size() == 784 * 256 + 256 + 256 * 128 + 128 + 128 * 10 + 10);
  CHECK(make_network("cnn", 1, 1).values().size() == 9 * 8 + 8 + 72 * 16 + 16 + 784 * 10 + 10);
  CHECK_THROWS_AS(make_network("rnn", 1, 1), std::logic_error);
}

TEST_CASE("network: a sample's output has the same bits alone, in any row, among any others") {
  for (const Model& model : models()) {
    Network network = make_network(model.name, 3 * kSampleBlock, 5);
    const std::size_t width = network.input_size();
    const auto set_row = [&](std::size_t row, std::size_t samples, float shift) {
      const auto pixels = network.input(samples).subspan(row * width, width);
      for (std::size_t i = 0; i < width; ++i) pixels[i] = static_cast<float>(i % 17) / 17 - shift;
    };
    for (std::size_t row = 0; row < 3 * kSampleBlock; ++row) set_row(row, 3 * kSampleBlock, static_cast<float>(row) / 24);
    const auto all = network.forward(3 * kSampleBlock);
    const std::vector<float> expected(all.begin(), all.end());
    // The middle block alone.
    for (std::size_t row = 0; row < kSampleBlock; ++row) set_row(row, kSampleBlock, static_cast<float>(row + kSampleBlock) / 24);
    CHECK(std::ranges::equal(network.forward(kSampleBlock), std::span(expected).subspan(kSampleBlock * 10, kSampleBlock * 10)));
  }
}

}  // namespace
TEST_CASE("network: a skip adds what it carries forward, and its gradient backward") {
  // y = W2 (W1 x + b1) + b2 + x, the skip over both layers; then a layer more, so that gradients flow through.
  const auto layers = [] {
    std::vector<std::unique_ptr<Layer>> all;
    all.push_back(std::make_unique<Dense>("in", 3, 4));
    all.push_back(std::make_unique<Dense>("a", 4, 2));
    all.push_back(std::make_unique<Dense>("b", 2, 4));
    all.push_back(std::make_unique<Dense>("out", 4, 1));
    return all;
  };
  Network with({layers(), {{1, 2}}}, 2), without({layers()}, 2);
  for (Network* each : {&with, &without}) {
    initialise(each->tensors(), 5, each->values());
    std::ranges::fill(each->input(2), 0.5F);
  }
  // By hand: h = in(x); y = out(b(a(h)) + h).
  const auto h_and_y = [](Network& network, bool skip) {
    const auto v = network.values();
    std::array<float, 4> h{}, r{};
    std::array<float, 2> m{};
    float y = v[16 + 10 + 12 + 4];
    for (std::size_t i = 0; i < 4; ++i) h[i] = v[12 + i] + 0.5F * (v[3 * i] + v[3 * i + 1] + v[3 * i + 2]);
    for (std::size_t i = 0; i < 2; ++i) {
      m[i] = v[24 + i];
      for (std::size_t j = 0; j < 4; ++j) m[i] += v[16 + 4 * i + j] * h[j];
    }
    for (std::size_t i = 0; i < 4; ++i) {
      r[i] = v[34 + i] + v[26 + 2 * i] * m[0] + v[26 + 2 * i + 1] * m[1] + (skip ? h[i] : 0);
      y += v[38 + i] * r[i];
    }
    return y;
  };
  CHECK(with.forward(2)[0] == Approx(h_and_y(with, true)));
  CHECK(without.forward(2)[0] == Approx(h_and_y(without, false)));
  // The bias of `in` sees both ways: by differences of a function that is linear in it.
  const std::vector<float> ones{1, 1};
  with.backward(2, ones, [](std::size_t) {});
  const float before = h_and_y(with, true), gradient = with.gradients()[12];
  with.values()[12] += 1;
  CHECK(gradient == Approx(2 * (h_and_y(with, true) - before)).margin(1e-5));
}

TEST_CASE("network: gradients of two halves of a batch add up") {
  Network network = small_network(4);
  std::ranges::fill(network.input(4), 0.5F);
  network.forward(4);
  const std::vector<float> flows(4 * network.output_size(), 1.0F);
  network.backward(4, flows, [](std::size_t) {});
  const std::vector<float> whole(network.gradients().begin(), network.gradients().end());
  network.forward(2);
  network.backward(2, std::span(flows).first(2 * network.output_size()), [](std::size_t) {});
  network.forward(2);
  network.backward(
      2, std::span(flows).first(2 * network.output_size()), [](std::size_t) {}, Into::add);
  for (std::size_t i = 0; i < whole.size(); ++i) CHECK(network.gradients()[i] == Approx(whole[i]).margin(1e-4));
}

}  // namespace shoal::train
