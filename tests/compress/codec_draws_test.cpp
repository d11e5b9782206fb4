// SPDX-License-Identifier: Apache-2.0
// Stochastic codecs: expected values, variances, and draws that depend on nothing but seed and place. All seeds are fixed, so
// that what passes once passes always.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "compress/codecs/codec.h"

using namespace shoal::compress;

namespace {

constexpr std::size_t kElements = 2600;  // blocks of all codecs, and a short one
constexpr std::uint64_t kSeeds = 2000;

std::vector<float> normal_input(std::size_t n) {
  std::mt19937 engine(11);
  std::normal_distribution<float> normal;
  std::vector<float> x(n);
  for (float& each : x) each = normal(engine);
  return x;
}

std::vector<float> round_trip(const Codec& codec, const std::vector<float>& x, std::uint64_t seed) {
  std::vector<std::byte> wire(codec.wire_bytes(x.size()));
  codec.encode(x.data(), x.size(), wire.data(), seed);
  std::vector<float> y(x.size());
  codec.decode(wire.data(), x.size(), y.data());
  return y;
}

// errors[seed][i] = decoded - x.
std::vector<std::vector<double>> errors_of(const Codec& codec, const std::vector<float>& x) {
  std::vector<std::vector<double>> errors;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const std::vector<float> y = round_trip(codec, x, seed);
    std::vector<double>& row = errors.emplace_back(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) row[i] = static_cast<double>(y[i]) - static_cast<double>(x[i]);
  }
  return errors;
}

// The distance between levels around an element of block [begin, end).
double unit_of(const std::string& codec, const std::vector<float>& x, std::size_t begin, std::size_t end) {
  double largest = 0, squares = 0;
  for (std::size_t i = begin; i < end; ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(x[i])));
    squares += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  }
  // The scale of the integers is the next bfloat16.
  const auto bfloat16_above = [](double v) {
    const double step = std::ldexp(1.0, std::ilogb(v) - 7);
    return std::ceil(v / step) * step;
  };
  if (codec == "int8_stochastic") return bfloat16_above(largest / 127);
  if (codec == "int4_stochastic") return bfloat16_above(largest / 7);
  if (codec == "qsgd") return std::sqrt(squares) / 127;
  if (codec == "qsgd4") return std::sqrt(squares) / 7;
  return largest;  // ternary
}

// Of an element: unit^2 f (1 - f), where f is how far it is from the level below. (Ternary: scale |x| - x^2.)
std::vector<double> variances_of(const Codec& codec, const std::vector<float>& x) {
  std::vector<double> variances(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t begin = i / codec.block * codec.block;
    const double unit = unit_of(std::string(codec.name), x, begin, std::min(x.size(), begin + codec.block));
    const double f = std::abs(static_cast<double>(x[i])) / unit - std::floor(std::abs(static_cast<double>(x[i])) / unit);
    variances[i] = unit * unit * f * (1 - f);
  }
  return variances;
}

// Means of products of errors, in units of their deviations, of elements `apart` from each other and seeds `later`.
double correlation(const std::vector<std::vector<double>>& errors, const std::vector<double>& variances, std::size_t apart,
                   std::size_t later) {
  double sum = 0;
  std::size_t pairs = 0;
  for (std::size_t seed = 0; seed + later < errors.size(); ++seed)
    for (std::size_t i = 0; i + apart < variances.size(); ++i)
      if (variances[i] > 0 && variances[i + apart] > 0) {
        sum += errors[seed][i] * errors[seed + later][i + apart] / std::sqrt(variances[i] * variances[i + apart]);
        ++pairs;
      }
  return sum / std::sqrt(static_cast<double>(pairs));
}

}  // namespace

TEST_CASE("Over many seeds every element's mean is the element and its variance what the codec's formula says") {
  int stochastic = 0;
  for (const Codec& codec : codecs()) {
    if (!codec.stochastic) continue;
    ++stochastic;
    CAPTURE(codec.name);
    const std::vector<float> x = normal_input(kElements);
    const auto errors = errors_of(codec, x);
    const std::vector<double> variances = variances_of(codec, x);
    const auto seeds = static_cast<double>(kSeeds);
    double chi_square = 0;  // of the means
    double measured = 0, formula = 0;
    int outside = 0;  // means beyond 4 sigma: 6 of 100,000 are expected
    for (std::size_t i = 0; i < kElements; ++i) {
      double sum = 0, squares = 0;
      for (const auto& row : errors) {
        sum += row[i];
        squares += row[i] * row[i];
      }
      const double sigma = std::sqrt(variances[i] / seeds) + 1e-6 * std::abs(static_cast<double>(x[i]));
      const double off = sum / seeds / sigma;
      chi_square += off * off;
      outside += std::abs(off) > 4 ? 1 : 0;
      measured += squares / seeds;
      formula += variances[i];
    }
    REQUIRE(outside <= 2);
    // A mean of n squares of normal variables is 1, give or take sqrt(2 / n).
    REQUIRE(chi_square / kElements < 1 + 4 * std::sqrt(2.0 / kElements));
    REQUIRE(measured == Approx(formula).epsilon(0.01));
  }
  REQUIRE(stochastic == 5);
}

TEST_CASE("QSGD's variance is within its theorem's bound") {
  const std::map<std::string, double> levels = {{"qsgd", 127}, {"qsgd4", 7}};
  for (const auto& [name, s] : levels) {
    CAPTURE(name);
    const std::vector<float> x = normal_input(512);
    const double squared_norm = std::inner_product(x.begin(), x.end(), x.begin(), 0.0);
    double sum = 0;
    for (const auto& row : errors_of(*find_codec(name), x)) sum += std::inner_product(row.begin(), row.end(), row.begin(), 0.0);
    REQUIRE(sum / static_cast<double>(kSeeds) <= std::min(512 / (s * s), std::sqrt(512.0) / s) * squared_norm);
  }
}

TEST_CASE("Draws of neighbours, of blocks and of successive seeds are independent") {
  for (const Codec& codec : codecs()) {
    if (!codec.stochastic) continue;
    const std::vector<float> x = normal_input(kElements);
    const auto errors = errors_of(codec, x);
    const std::vector<double> variances = variances_of(codec, x);
    for (const std::size_t later : {0, 1}) {
      for (const std::size_t apart :
           {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{8}, std::size_t{32}, codec.block}) {
        if (later == 0 && apart == 0) continue;
        CAPTURE(codec.name, later, apart);
        REQUIRE(std::abs(correlation(errors, variances, apart, later)) < 4);
      }
    }
  }
}

TEST_CASE(
    "The same seed draws the same, another seed something else, and no block draws what another one does under another seed") {
  for (const Codec& codec : codecs()) {
    if (!codec.stochastic) continue;
    CAPTURE(codec.name);
    std::vector<float> half = normal_input(codec.block), x = half;
    x.insert(x.end(), half.begin(), half.end());  // two blocks alike
    const std::vector<float> y = round_trip(codec, x, 77);
    REQUIRE(round_trip(codec, x, 77) == y);
    REQUIRE(round_trip(codec, x, 78) != y);
    REQUIRE(round_trip(codec, x, 77 + (std::uint64_t{1} << 63)) != y);
    const auto middle = y.begin() + static_cast<std::ptrdiff_t>(codec.block);
    const std::vector<float> second(middle, y.end());
    REQUIRE(std::vector<float>(y.begin(), middle) != second);
    // Seeds that callers make of counters with the usual constants.
    for (const std::uint64_t constant : {0x9E3779B97F4A7C15U, 0xD1342543DE82EF95U, std::uint64_t{1}, std::uint64_t{1} << 32})
      for (std::uint64_t k = 1; k < 4; ++k) {
        REQUIRE(round_trip(codec, half, 77 + k * constant) != second);
        REQUIRE(round_trip(codec, half, 77 - k * constant) != second);
      }
    // A shorter vector draws the same for the elements that it has.
    const std::vector<float> beginning = round_trip(codec, half, 77);
    REQUIRE(std::equal(beginning.begin(), beginning.end(), y.begin()));
  }
}

TEST_CASE("Elements that are levels are kept as they are, whatever is drawn") {
  // Units that are bfloat16s without a finite inverse.
  for (const float unit : {0.375F, 1.3515625F, 0x1.02p-20F, 0x1.B6p30F, 0x1.5Ap100F}) {
    for (const Codec& codec : codecs()) {
      if (!codec.stochastic || codec.name.starts_with("qsgd")) continue;
      const int levels = codec.name == "ternary" ? 1 : codec.name.starts_with("int8") ? 127 : 7;
      std::mt19937 engine(12);
      std::vector<float> x(3000);
      for (float& each : x)
        each = unit * static_cast<float>(static_cast<int>(engine() % static_cast<unsigned>(2 * levels + 1)) - levels);
      for (std::size_t i = 0; i < x.size(); i += 32) x[i] = unit * static_cast<float>(levels);
      for (std::uint64_t seed = 0; seed < 100; ++seed) {
        CAPTURE(codec.name, unit, seed);
        REQUIRE(round_trip(codec, x, seed) == x);
      }
    }
  }
  // The norm is a level only where it is that of one element.
  for (const char* name : {"qsgd", "qsgd4"}) {
    std::vector<float> x(3000);
    for (std::size_t i = 3; i < x.size(); i += 512) x[i] = -0.7F;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      CAPTURE(name, seed);
      const std::vector<float> y = round_trip(*find_codec(name), x, seed);
      for (std::size_t i = 0; i < x.size(); ++i) REQUIRE(y[i] == Approx(x[i]).epsilon(2e-7).margin(0));
    }
  }
}
