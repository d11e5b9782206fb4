// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <random>

#include "compress/lockstep.h"

using namespace shoal::compress;
using testing::Outcome;

namespace {

using Inputs = std::vector<std::vector<float>>;

Inputs random_inputs(int world, std::size_t n, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  Inputs inputs(static_cast<std::size_t>(world), std::vector<float>(n));
  for (auto& each : inputs)
    for (float& x : each) x = normal(engine);
  return inputs;
}

constexpr std::size_t kWeights = 7;
// Seven weights with a gradient of 1 each, one sent a step: ties go to the lower index, so the last one is sent in steps 7, 14
// and 21. All that it moves in 21 steps, with a learning rate of 1 and, on what comes out, the momentum of an optimiser.
float moved(const char* options, float optimiser) {
  const auto ranks = testing::make_ranks("dgc", options, {kWeights, 1}, 1);
  float weight = 0, velocity = 0;
  for (int step = 1; step <= 21; ++step) {
    const Outcome outcome = testing::all_reduce(ranks, {std::vector<float>(kWeights, 1.0F)});
    REQUIRE(outcome.wrong == "");
    REQUIRE((outcome.outputs[0].back() != 0) == (step % 7 == 0 || std::string_view(options).find("density=1,") == 0));
    velocity = optimiser * velocity + outcome.outputs[0].back();
    weight -= velocity;
  }
  return weight;
}

// One rank's u and v after the last call.
struct Memory {
  std::vector<float> u, v;
};
Memory memory(const Compressor& compressor, std::size_t n) {
  StateWriter state;
  compressor.save(state);
  StateReader in(state.bytes());
  in.number();
  Memory memory{std::vector<float>(n), std::vector<float>(n)};
  REQUIRE(in.floats(memory.u));
  REQUIRE(in.floats(memory.v));
  return memory;
}

}  // namespace

TEST_CASE("DGC: momentum correction moves a rarely sent weight as far as dense momentum does, accumulation alone does not") {
  // One weight, g = 1, m = 0.9, 21 steps, sent every 7th.
  CHECK(moved("density=1,dense_below=0", 0) == Approx(-129.8477).epsilon(1e-6));
  CHECK(moved("density=0.14,dense_below=0,masking=0", 0) == Approx(-129.8477).epsilon(1e-6));
  CHECK(moved("density=0.14,dense_below=0,momentum=0", 0.9F) == Approx(-102.4549).epsilon(1e-6));
  CHECK(moved("density=0.14,dense_below=0", 0) == Approx(-69.1402).epsilon(1e-6));
}

TEST_CASE("DGC at density 1, masking or not, is dense momentum SGD bit for bit; Nesterov's, too") {
  const std::size_t n = 333;
  for (const bool nesterov : {false, true})
    for (const char* masking : {"masking=0", "masking=1"}) {
      const std::string options = std::string("density=1,momentum=0.9,") + masking + (nesterov ? ",nesterov=1" : "");
      const auto ranks = testing::make_ranks("dgc", options, {n, 3}, 3);
      std::vector<float> u(n);
      for (unsigned step = 0; step < 5; ++step) {
        const Inputs inputs = random_inputs(3, n, step);
        const Outcome outcome = testing::all_reduce(ranks, inputs);
        REQUIRE(outcome.wrong == "");
        for (std::size_t i = 0; i < n; ++i) {
          const float g = inputs[0][i] + inputs[1][i] + inputs[2][i];
          u[i] = nesterov ? 0.9F * (u[i] + g) : 0.9F * u[i] + g;
          for (const auto& each : outcome.outputs) REQUIRE(each[i] == (nesterov ? u[i] + g : u[i]));
        }
        CHECK(ranks[0]->report().dense);
      }
    }
}

TEST_CASE("DGC: short vectors go dense, matrices and long ones do not") {
  const auto goes_dense = [](Shape shape, const char* options) {
    const auto ranks = testing::make_ranks("dgc", options, shape, 2);
    testing::all_reduce(ranks, random_inputs(2, shape.elements, 1));
    return ranks[0]->report().dense;
  };
  CHECK(goes_dense({64, 1}, ""));
  CHECK(goes_dense({64, 64}, ""));
  CHECK_FALSE(goes_dense({64, 8}, "schedule=gather"));
  CHECK_FALSE(goes_dense({16384, 1}, ""));
  CHECK(goes_dense({16383, 1}, ""));
  CHECK_FALSE(goes_dense({64, 1}, "dense_below=64,schedule=gather"));
}

TEST_CASE("DGC: the formulas, step by step") {
  const std::size_t n = 400;
  for (const bool nesterov : {false, true})
    for (const bool masking : {false, true}) {
      const std::string options = std::string("density=0.1,momentum=0.5,dense_below=0,nesterov=") + (nesterov ? "1" : "0") +
                                  ",masking=" + (masking ? "1" : "0");
      CAPTURE(options);
      const auto ranks = testing::make_ranks("dgc", options, {n, 1}, 2);
      std::vector<Memory> expected(2, {std::vector<float>(n), std::vector<float>(n)});
      for (unsigned step = 0; step < 6; ++step) {
        const Inputs inputs = random_inputs(2, n, step);
        const Outcome outcome = testing::all_reduce(ranks, inputs, true);
        REQUIRE(outcome.wrong == "");
        std::vector<float> sum(n);
        for (std::size_t r = 0; r < 2; ++r) {
          auto& [u, v] = expected[r];
          std::vector<float> sizes;
          for (std::size_t i = 0; i < n; ++i) {
            const float g = 0.5F * inputs[r][i];
            u[i] = nesterov ? 0.5F * (u[i] + g) : 0.5F * u[i] + g;
            v[i] = v[i] + u[i];
            if (nesterov) v[i] += g;
            sizes.push_back(std::abs(v[i]));
          }
          std::nth_element(sizes.begin(), sizes.begin() + 39, sizes.end(), std::greater<>());
          for (std::size_t i = 0; i < n; ++i) {
            if (std::abs(v[i]) < sizes[39]) continue;
            sum[i] += v[i];
            v[i] = 0;
            if (masking) u[i] = 0;
          }
          const Memory actual = memory(*ranks[r], n);
          REQUIRE(actual.u == u);
          REQUIRE(actual.v == v);
          CHECK(ranks[r]->report().selected == 40);
        }
        for (const auto& each : outcome.outputs) REQUIRE(each == sum);
      }
    }
}

TEST_CASE("DGC: the local gradient is clipped to clip / sqrt(world) before it is accumulated") {
  const auto first = [](const char* options, int world, std::vector<float> input) {
    const auto ranks = testing::make_ranks("dgc", options, {2, 1}, world);
    testing::all_reduce(ranks, Inputs(static_cast<std::size_t>(world), input));
    return memory(*ranks[0], 2).u;
  };
  CHECK(first("density=0.5,dense_below=0,masking=0,clip=10", 4, {3, 4}) == std::vector<float>{3, 4});
  CHECK(first("density=0.5,dense_below=0,masking=0,clip=2", 4, {3, 4}) == std::vector<float>{0.2F * 3, 0.2F * 4});
  CHECK(first("density=0.5,dense_below=0,masking=0,clip=2", 1, {3, 4}) == std::vector<float>{0.4F * 3, 0.4F * 4});
  CHECK(first("density=0.5,dense_below=0,masking=0,clip=2", 1, {0, 0}) == std::vector<float>{0, 0});
}

TEST_CASE("DGC's warm-up keeps a quarter of what it kept from epoch to epoch, then the density") {
  const std::size_t n = 100000;
  const auto ranks = testing::make_ranks("dgc", "density=0.001,sample=1,dense_below=0,schedule=gather,warmup_steps=2", {n, 1}, 1);
  for (const std::uint64_t k : {25000, 25000, 6250, 6250, 1563, 1563, 391, 391, 100, 100, 100}) {
    testing::all_reduce(ranks, random_inputs(1, n, 1));
    CHECK(ranks[0]->report().selected == k);
  }
  const auto early = testing::make_ranks("dgc", "density=0.1,sample=1,dense_below=0,warmup_steps=1,warmup_epochs=1", {n, 1}, 1);
  for (const std::uint64_t k : {25000, 10000}) {
    testing::all_reduce(early, random_inputs(1, n, 1));
    CHECK(early[0]->report().selected == k);
  }
}

TEST_CASE("DGC moves 667 times less than float32 at density 0.001, 1000 times with fp16, and never less than 270") {
  const std::size_t n = 1000000;
  const Inputs inputs = random_inputs(2, n, 1);
  const double all = 4.0 * static_cast<double>(n);
  const auto ranks = testing::make_ranks("dgc", "sample=1,schedule=gather", {n, 1000}, 2);
  const Outcome outcome = testing::all_reduce(ranks, inputs);
  CHECK(ranks[0]->report().selected == 1000);
  CHECK(ranks[0]->report().encoded_bytes == 1 + 6 * 1000);
  CHECK(all / outcome.sent[0] > 660);
  const auto half = testing::make_ranks("dgc", "sample=1,schedule=gather,values=fp16", {n, 1000}, 2);
  testing::all_reduce(half, inputs);
  CHECK(half[0]->report().encoded_bytes == 1 + 4 * 1000);
  const auto sampled = testing::make_ranks("dgc", "", {n, 1000}, 2);
  for (unsigned call = 0; call < 3; ++call) {
    const Outcome each = testing::all_reduce(sampled, inputs);
    CHECK(all / each.sent[0] > 270);
  }
}

TEST_CASE("DGC refuses options out of range, and says what is allowed") {
  const Kind* kind = find_kind("dgc");
  REQUIRE(kind != nullptr);
  CHECK(Options::parse("density=0", kind->options, "dgc").status().text() == "dgc: density is 0, allowed are 1e-07 to 1");
  CHECK(Options::parse("schedule=ring", kind->options, "dgc").status().text() ==
        "dgc: schedule is \"ring\", must be one of auto|gather|doubling|split|dense");
}
