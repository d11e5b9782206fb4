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

using Layers = std::vector<std::unique_ptr<Layer>>;

Layers mlp() {
  Layers layers;
  layers.push_back(std::make_unique<Dense>("dense1", kPixels, 256));
  layers.push_back(std::make_unique<Relu>(256));
  layers.push_back(std::make_unique<Dense>("dense2", 256, 128));
  layers.push_back(std::make_unique<Relu>(128));
  layers.push_back(std::make_unique<Dense>("dense3", 128, kClasses));
  return layers;
}

Layers cnn() {
  Layers layers;
  layers.push_back(std::make_unique<Conv3x3>("conv1", 28, 1, 8));
  layers.push_back(std::make_unique<Relu>(28 * 28 * 8));
  layers.push_back(std::make_unique<MaxPool>(28, 8));
  layers.push_back(std::make_unique<Conv3x3>("conv2", 14, 8, 16));
  layers.push_back(std::make_unique<Relu>(14 * 14 * 16));
  layers.push_back(std::make_unique<MaxPool>(14, 16));
  layers.push_back(std::make_unique<Dense>("dense", 7 * 7 * 16, kClasses));
  return layers;
}

constexpr Model kModels[] = {
    {"mlp", "784-256-128-10, ReLU between", mlp},
    {"cnn", "3x3 convolution to 8 channels, pool, 3x3 to 16, pool, dense to 10", cnn},
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
