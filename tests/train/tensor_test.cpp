// SPDX-License-Identifier: Apache-2.0
#include "train/nn/tensor.h"

#include <catch2/catch.hpp>
#include <cmath>

namespace shoal::train {
namespace {

std::vector<Tensor> layout() {
  std::vector<Tensor> tensors;
  append(tensors, {.name = "w", .shape = {200, 50}, .fan_in = 50});
  append(tensors, {.name = "b", .shape = {200}});
  append(tensors, {.name = "k", .shape = {8, 3, 3, 2}, .fan_in = 18});
  return tensors;
}

TEST_CASE("tensor: tensors lie one behind the other in registration order") {
  const auto tensors = layout();
  CHECK(tensors[0].offset == 0);
  CHECK(tensors[0].count == 10000);
  CHECK(tensors[1].offset == 10000);
  CHECK(tensors[2].offset == 10200);
  CHECK(tensors[2].count == 144);
}

TEST_CASE("tensor: He initialisation has deviation sqrt(2 / fan-in), and biases start at zero") {
  const auto tensors = layout();
  std::vector<float> values(10344);
  initialise(tensors, 1, values);
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < 10000; ++i) {
    sum += static_cast<double>(values[i]);
    squares += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  }
  CHECK(std::abs(sum / 10000) < 0.01);  // five deviations of the mean
  CHECK(std::sqrt(squares / 10000) == Approx(std::sqrt(2.0 / 50)).epsilon(0.05));
  for (std::size_t i = 10000; i < 10200; ++i) CHECK(values[i] == 0.0F);
  CHECK(values[10200] != 0.0F);
}

TEST_CASE("tensor: the same seed gives the same bits, another seed others") {
  const auto tensors = layout();
  std::vector<float> first(10344), again(10344), other(10344);
  initialise(tensors, 1, first);
  initialise(tensors, 1, again);
  initialise(tensors, 2, other);
  CHECK(hash_bits(first) == hash_bits(again));
  CHECK(first == again);
  CHECK(hash_bits(first) != hash_bits(other));
}

TEST_CASE("tensor: the hash sees every bit, the order, and the sign of zero") {
  CHECK(hash_bits(std::vector<float>{1, 2}) != hash_bits(std::vector<float>{2, 1}));
  CHECK(hash_bits(std::vector<float>{0.0F}) != hash_bits(std::vector<float>{-0.0F}));
  CHECK(hash_bits(std::vector<float>{1.0F}) != hash_bits(std::vector<float>{std::nextafter(1.0F, 2.0F)}));
  CHECK(hash_bits({}) != hash_bits(std::vector<float>{0.0F}));
}

}  // namespace
}  // namespace shoal::train
