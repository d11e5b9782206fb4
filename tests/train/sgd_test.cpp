// SPDX-License-Identifier: Apache-2.0
#include "train/nn/sgd.h"

#include <catch2/catch.hpp>

namespace shoal::train {
namespace {

std::vector<Tensor> weight_and_bias() {
  std::vector<Tensor> tensors;
  append(tensors, {.name = "w", .shape = {2, 1}, .fan_in = 1});
  append(tensors, {.name = "b", .shape = {2}});
  return tensors;
}

TEST_CASE("sgd: two steps with momentum and decay, exactly") {
  Sgd sgd({.rate = 1, .momentum = 0.5, .weight_decay = 0.25}, 4);
  std::vector<float> values{4, -4, 4, -4};
  const std::vector<float> gradients{1, 1, 1, 1};
  sgd.update(weight_and_bias(), {0, 4}, 0.5F, gradients, values);
  CHECK(values == std::vector<float>{3, -4, 3.5F, -4.5F});  // v = 2, 0 with decay; 1, 1 without
  sgd.update(weight_and_bias(), {0, 4}, 0.5F, gradients, values);
  CHECK(values == std::vector<float>{1.625F, -4, 2.75F, -5.25F});  // v = 1 + 1.75, 0 + 0; 1.5, 1.5
}

TEST_CASE("sgd: a range moves its own tensors only") {
  Sgd sgd({.rate = 1, .momentum = 0, .weight_decay = 0}, 4);
  std::vector<float> values(4);
  const std::vector<float> gradients{1, 1, 1, 1};
  sgd.update(weight_and_bias(), {2, 4}, 1, gradients, values);
  CHECK(values == std::vector<float>{0, 0, -1, -1});
  sgd.update(weight_and_bias(), {0, 2}, 1, gradients, values);
  CHECK(values == std::vector<float>{-1, -1, -1, -1});
}

TEST_CASE("sgd: the rate warms up over a twentieth, peaks, and falls to nearly zero") {
  CHECK(learning_rate(1, 0, 100) == Approx(1.0 / 6));
  CHECK(learning_rate(1, 4, 100) == Approx(5.0 / 6));
  CHECK(learning_rate(1, 5, 100) == 1.0F);
  CHECK(learning_rate(1, 99, 100) > 0.0F);
  CHECK(learning_rate(1, 99, 100) < 0.001F);
  CHECK(learning_rate(0.5, 0, 1) == 0.5F);
  for (std::size_t step = 6; step < 100; ++step) CHECK(learning_rate(1, step, 100) < learning_rate(1, step - 1, 100));
}

}  // namespace
}  // namespace shoal::train
