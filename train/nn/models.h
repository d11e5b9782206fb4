// SPDX-License-Identifier: Apache-2.0
// The models by name: a table, so that a new one is a function and a line.
#pragma once

#include <string>
#include <string_view>

#include "train/nn/network.h"

namespace shoal::train {

struct Model {
  std::string_view name;     // as --model takes it
  std::string_view summary;  // one line for --help
  Layers (*layers)();
};

std::span<const Model> models();

// A network with the layers of models()' entry of that name and parameters from `seed`. The name must exist.
Network make_network(std::string_view name, std::size_t capacity, std::uint64_t seed);

}  // namespace shoal::train
