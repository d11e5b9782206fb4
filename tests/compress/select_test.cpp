// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "compress/sparse/floats.h"
#include "compress/sparse/select.h"
#include "device/instruction_sets.h"

using namespace shoal::compress::sparse;

namespace {

using Picked = std::vector<std::pair<std::uint32_t, float>>;

Picked picked(const Selector& selector) {
  Picked all;
  for (std::size_t i = 0; i < selector.selected().size(); ++i)
    all.emplace_back(selector.selected().indices[i], selector.selected().values[i]);
  return all;
}

Picked top(const std::vector<float>& x, std::size_t k, double sample = 0.01) {
  Selector selector;
  selector.select({.input = x.data()}, x.size(), k, sample, 1);
  REQUIRE(selector.finite());
  return picked(selector);
}

// By the definition.
Picked sorted_top(const std::vector<float>& x, std::size_t k) {
  std::vector<std::uint32_t> order(x.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return std::abs(x[a]) > std::abs(x[b]); });
  order.resize(std::min(k, order.size()));
  std::sort(order.begin(), order.end());
  Picked all;
  for (const std::uint32_t i : order) all.emplace_back(i, x[i]);
  return all;
}

std::vector<float> random_vector(std::size_t n, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(n);
  for (float& each : x) each = normal(engine);
  return x;
}

}  // namespace

TEST_CASE("Selection: by magnitude, not by signed value") { CHECK(top({-9, 1, 2, -3}, 2) == Picked{{0, -9.0F}, {3, -3.0F}}); }

TEST_CASE("Selection: zeros give valid distinct indices, equal magnitudes the lower index") {
  CHECK(top({0, 0, 0, 0}, 3) == Picked{{0, 0.0F}, {1, 0.0F}, {2, 0.0F}});
  CHECK(top({1, -1, 1, 2, -1}, 3) == Picked{{0, 1.0F}, {1, -1.0F}, {3, 2.0F}});
  const std::vector<float> equal(100000, -0.5F);
  const Picked all = top(equal, 10000);
  REQUIRE(all.size() == 10000);
  for (std::uint32_t i = 0; i < all.size(); ++i) REQUIRE(all[i] == std::pair(i, -0.5F));
}

TEST_CASE("Selection: k is clamped to the number of elements, and may be 0") {
  CHECK(top({3, 1}, 0).empty());
  CHECK(top({3, 1}, 2).size() == 2);
  CHECK(top({3, 1}, 100).size() == 2);
  CHECK(top({}, 0).empty());
  CHECK(top({}, 7).empty());
}

TEST_CASE("Selection: NaN and infinity are found wherever they are, and nothing else is") {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()})
    for (const std::size_t n : {1, 57, 4097, 70000})
      for (const std::size_t at : {std::size_t{0}, n / 2, n - 1}) {
        std::vector<float> x(n, std::numeric_limits<float>::max());
        Selector selector;
        selector.select({.input = x.data()}, n, 3, 0.01, 1);
        REQUIRE(selector.finite());
        x[at] = bad;
        selector.select({.input = x.data()}, n, 3, 0.01, 1);
        REQUIRE_FALSE(selector.finite());
      }
}

TEST_CASE("Selection: a step whose sum overflows is not finite, though input and residual are") {
  const std::vector<float> large(5, std::numeric_limits<float>::max());
  std::vector<float> next(5);
  Selector selector;
  selector.select({.input = large.data(), .residual = large.data(), .next_residual = next.data()}, 5, 1, 0.01, 1);
  CHECK_FALSE(selector.finite());
}

TEST_CASE("Selection without a sample is the k largest exactly, whatever their order") {
  const std::size_t n = GENERATE(1, 2, 57, 255, 4097, 100003);
  std::vector<float> x = random_vector(n, 3);
  for (const double density : {0.001, 0.01, 0.3, 1.0}) {
    const auto k = static_cast<std::size_t>(kept(density, n));
    CAPTURE(n, k);
    REQUIRE(top(x, k, 1) == sorted_top(x, k));
    std::sort(x.begin(), x.end(), [](float a, float b) { return std::abs(a) < std::abs(b); });  // every block beats those before
    REQUIRE(top(x, k, 1) == sorted_top(x, k));
  }
}

TEST_CASE("Sampled selection takes between 0.8 k and k, all of them among the largest") {
  std::vector<float> x = random_vector(300007, 1);
  const Picked exact = sorted_top(x, 1001);
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Selector selector;
    selector.select({.input = x.data()}, x.size(), 1001, 0.001, seed);
    const Picked all = picked(selector);
    REQUIRE(all.size() <= 1001);
    REQUIRE(all.size() >= 800);
    REQUIRE(std::includes(exact.begin(), exact.end(), all.begin(), all.end()));
  }
}

TEST_CASE("A threshold that is too high is lowered, ten times at most") {
  // The sample sees nothing but large elements, and few others are as large.
  const std::size_t n = 1 << 20, k = 4096;
  const Sample places = sample_of(n, k, 0.01, 5);
  REQUIRE(places.stride == 97);
  std::vector<float> x(n, 1.0F);
  for (std::size_t i = places.start; i < n; i += places.stride) x[i] = 1.5F;
  for (std::size_t i = places.start; i < n; i += places.stride) x[i] += static_cast<float>(i % 7) * 1e-3F;
  Selector selector;
  selector.select({.input = x.data()}, n, k, 0.01, 5);
  CHECK(selector.selected().size() <= k);
  CHECK(selector.rounds() <= 10);
  // One that lies: ten elements of a size, the rest far below.
  std::fill(x.begin(), x.end(), 1e-6F);
  for (std::size_t i = places.start, j = 0; i < n && j < 200; i += places.stride, ++j) x[i] = 1;
  selector.select({.input = x.data()}, n, k, 0.01, 5);
  CHECK(selector.rounds() == 10);
  CHECK(selector.selected().size() == 200);
}

TEST_CASE("The number kept is the ceiling, whole where the product is, and right beyond 2^31 and 2^32 elements") {
  CHECK(kept(0.001, 0) == 0);
  CHECK(kept(0.001, 1) == 1);
  CHECK(kept(0.001, 1000) == 1);
  CHECK(kept(0.001, 1001) == 2);
  CHECK(kept(0.07, 100) == 7);
  CHECK(kept(0, 5) == 0);
  CHECK(kept(1, 5) == 5);
  CHECK(kept(0.001, std::uint64_t{3} << 30) == 3221226);
  CHECK(kept(1, (std::uint64_t{1} << 33) + 1) == (std::uint64_t{1} << 33) + 1);
  CHECK(kept(0.5, (std::uint64_t{1} << 33) + 1) == (std::uint64_t{1} << 32) + 1);
}

TEST_CASE("Samples: odd strides, long ones 32 j + 1; at least as many as asked for; within the vector, beyond 2^32, too") {
  for (const std::uint64_t n : {std::uint64_t{1}, std::uint64_t{1000}, std::uint64_t{1} << 20, (std::uint64_t{1} << 34) + 7})
    for (const double fraction : {1e-4, 1e-3, 1e-2, 0.1, 1.0})
      for (std::uint64_t seed = 0; seed < 50; ++seed) {
        const std::uint64_t k = kept(0.001, n);
        const Sample places = sample_of(n, k, fraction, seed);
        CAPTURE(n, fraction, seed);
        REQUIRE(places.stride % 2 == 1);
        REQUIRE((places.stride < 32 || places.stride % 32 == 1));
        REQUIRE(places.start < places.stride);
        const std::uint64_t size = places.size(n);
        REQUIRE(size >= static_cast<std::uint64_t>(fraction * static_cast<double>(n)));
        REQUIRE(places.start + (size - 1) * places.stride < n);
        REQUIRE(places.start + size * places.stride >= n);
      }
}

TEST_CASE("Every rule of accumulation is its formula bit for bit, with every instruction set, streaming or not") {
  struct Rule {
    bool residual, velocity, nesterov;
  };
  shoal::device::for_each_instruction_set([] {
    for (const std::size_t n : {1, 7, 57, 255, 4097, 20000})
      for (const Rule rule : {Rule{false, false, false}, {true, false, false}, {true, true, false}, {true, true, true}})
        for (const bool stream : {false, true}) {
          CAPTURE(n, rule.residual, rule.velocity, rule.nesterov, stream);
          const std::vector<float> g = random_vector(n, 1), v = random_vector(n, 2), u = random_vector(n, 3);
          const Floats next_v(n), next_u(n);
          const Accumulation step{.input = g.data(),
                                  .scale = 0.3F,
                                  .residual = rule.residual ? v.data() : nullptr,
                                  .velocity = rule.velocity ? u.data() : nullptr,
                                  .next_residual = next_v.data(),
                                  .next_velocity = next_u.data(),
                                  .momentum = 0.9F,
                                  .nesterov = rule.nesterov,
                                  .stream = stream};
          Selector selector;
          selector.select(step, n, n / 10 + 1, 1, 1);
          std::vector<float> all(n), velocities(n);
          for (std::size_t i = 0; i < n; ++i) {
            const float s = 0.3F * g[i];
            const float m = 0.9F * (rule.nesterov ? u[i] + s : u[i]);
            velocities[i] = rule.velocity ? (rule.nesterov ? m : m + s) : 0;
            all[i] = !rule.residual ? s : !rule.velocity ? v[i] + s : v[i] + velocities[i];
            if (rule.nesterov) all[i] += s;
          }
          REQUIRE(picked(selector) == sorted_top(all, n / 10 + 1));
          if (rule.residual) REQUIRE(std::equal(all.begin(), all.end(), next_v.data()));
          if (rule.velocity) REQUIRE(std::equal(velocities.begin(), velocities.end(), next_u.data()));
        }
  });
}

TEST_CASE("Zeros are written everywhere and nowhere else, past the caches too") {
  shoal::device::for_each_instruction_set([] {
    for (const std::size_t n : {std::size_t{0}, std::size_t{5}, kStreamBytes / 4 + 13})
      for (const std::size_t first : {1, 4, 16}) {
        std::vector<float> x(n + 32, 7.0F);
        fill_zero(x.data() + first, n);
        REQUIRE(static_cast<std::size_t>(std::count(x.begin(), x.end(), 0.0F)) == n);
        REQUIRE(x[first - 1] == 7);
        REQUIRE(x[first + n] == 7);
      }
  });
}
