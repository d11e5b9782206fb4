// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <random>

#include "compress/codecs/codec.h"
#include "compress/lockstep.h"

using namespace shoal::compress;
using testing::Outcome;

namespace {

std::vector<std::vector<float>> random_inputs(int world, std::size_t n, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<std::vector<float>> inputs(static_cast<std::size_t>(world), std::vector<float>(n));
  for (auto& each : inputs)
    for (float& x : each) x = normal(engine);
  return inputs;
}

}  // namespace

TEST_CASE("Every codec's all-reduce at every world and awkward lengths: all ranks the same bits, within two roundings") {
  const int world = GENERATE(1, 2, 3, 4, 5, 6, 7, 8, 9);
  const std::size_t n = GENERATE(0, 1, 2, 57, 255, 4097);
  for (const Codec& codec : codecs()) {
    CAPTURE(codec.name, world, n);
    const auto inputs = random_inputs(world, n, 7);
    const Outcome outcome = testing::all_reduce(testing::make_ranks(codec.name, "", {n, 1}, world), inputs);
    REQUIRE(outcome.wrong == "");
    for (const auto& each : outcome.outputs) REQUIRE(each == outcome.outputs.front());
  }
}
