// SPDX-License-Identifier: Apache-2.0
#include "train/nn/models.h"

#include <stdexcept>

#include "train/data/fashion_mnist.h"
#include "train/nn/conv3x3.h"
#include "train/nn/dense.h"
#include "train/nn/max_pool.h"
#include "train/nn/relu.h"

namespace shoal::train {
namespace {

Layers mlp() {
  Layers model;
  auto& layers = model.layers;
  layers.push_back(std::make_unique<Dense>("dense1", kPixels, 256));
  layers.push_back(std::make_unique<Relu>(256));
  layers.push_back(std::make_unique<Dense>("dense2", 256, 128));
  layers.push_back(std::make_unique<Relu>(128));
  layers.push_back(std::make_unique<Dense>("dense3", 128, kClasses));
  return model;
}

Layers cnn() {
  Layers model;
  auto& layers = model.layers;
  layers.push_back(std::make_unique<Conv3x3>("conv1", 28, 1, 8));
  layers.push_back(std::make_unique<Relu>(28 * 28 * 8));
  layers.push_back(std::make_unique<MaxPool>(28, 8));
  layers.push_back(std::make_unique<Conv3x3>("conv2", 14, 8, 16));
  layers.push_back(std::make_unique<Relu>(14 * 14 * 16));
  layers.push_back(std::make_unique<MaxPool>(14, 16));
  layers.push_back(std::make_unique<Dense>("dense", 7 * 7 * 16, kClasses));
  return model;
}

// Two stages, each a 3x3 convolution that widens and a residual pair of 3x3 convolutions.
Layers resnet() {
  Layers model;
  auto& layers = model.layers;
  const auto convolution = [&](const char* name, std::size_t side, std::size_t from, std::size_t to, bool starts = true) {
    layers.push_back(std::make_unique<Conv3x3>(name, side, from, to, starts));
  };
  const auto relu = [&](std::size_t size) { layers.push_back(std::make_unique<Relu>(size)); };
  const auto stage = [&](const char* widen, const char* first, const char* second, std::size_t side, std::size_t from,
                         std::size_t to) {
    const std::size_t after = side / 2, size = after * after * to;
    convolution(widen, side, from, to);
    relu(side * side * to);
    layers.push_back(std::make_unique<MaxPool>(side, to));
    const std::size_t begin = layers.size();
    convolution(first, after, to, to);
    relu(size);
    convolution(second, after, to, to, false);
    model.skips.push_back({begin, layers.size() - 1});
    relu(size);
  };
  stage("conv1", "residual1a", "residual1b", 28, 1, 16);
  stage("conv2", "residual2a", "residual2b", 14, 16, 32);
  layers.push_back(std::make_unique<Dense>("dense", 7 * 7 * 32, kClasses));
  return model;
}

constexpr Model kModels[] = {
    {"mlp", "784-256-128-10, ReLU between", mlp},
    {"cnn", "3x3 convolution to 8 channels, pool, 3x3 to 16, pool, dense to 10", cnn},
    {"resnet", "two stages of 16 and 32 channels, each with a residual pair of 3x3 convolutions, dense to 10", resnet},
};

}  // namespace

std::span<const Model> models() { return kModels; }

Network make_network(std::string_view name, std::size_t capacity, std::uint64_t seed) {
  for (const Model& model : kModels) {
    if (model.name != name) continue;
    Network network(model.layers(), capacity);
    initialise(network.tensors(), seed, network.values());
    return network;
  }
  throw std::logic_error("no model of that name");
}

}  // namespace shoal::train
