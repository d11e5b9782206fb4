// SPDX-License-Identifier: Apache-2.0
// Exact sums against integers as wide as the widest type needs, and against sums known by hand.
#include "device/exact.h"

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "core/expects.h"
#include "device/exact_reference.h"
#include "device/reference.h"

namespace {

using namespace shoal;
using namespace shoal::device;
using namespace shoal::device::reference;

constexpr DataType kFloats[] = {DataType::float16, DataType::bfloat16,    DataType::float32,
                                DataType::float64, DataType::float8_e4m3, DataType::float8_e5m2};
constexpr World kWorlds[] = {{1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}};

// values[r]: rank r's elements.
using Values = std::vector<std::vector<Element>>;

Element reference_sum(DataType type, const Values& values, std::size_t index, std::uint32_t divisor) {
  Wide sum;
  for (const auto& rank : values) sum += wide(type, rank[index]);
  return nearest_quotient(type, sum, divisor);
}

std::vector<std::byte> packed(DataType type, const std::vector<Element>& elements, std::size_t offset = 0) {
  std::vector<std::byte> bytes(offset + elements.size() * element_bytes(type) + 1);
  for (std::size_t i = 0; i < elements.size(); ++i) reference::write(type, bytes.data() + offset, i, elements[i]);
  return bytes;
}

ExactNeeds joined(ExactNeeds a, ExactNeeds b) {
  return {std::max(a.highest, b.highest), std::max(a.minus_lowest, b.minus_lowest), std::max(a.nonfinite, b.nonfinite)};
}

struct Options {
  std::uint32_t divisor = 1;
  ExactNeeds wider{};      // joined with what the values need
  std::size_t offset = 0;  // of unaligned elements
};

// The whole way: scan, agree, encode, add, decode.
std::vector<Element> exact_sum(DataType type, const Values& values, Options options = {}) {
  ExactNeeds needs = options.wider;
  const std::size_t n = values[0].size();
  for (const auto& rank : values)
    needs = joined(needs, scan(type, packed(type, rank, options.offset).data() + options.offset, n));
  const ExactWindow window = window_for(needs);
  std::vector<std::int64_t> sum(n * window.words() + 1), row(n * window.words() + 1, -1);
  for (const auto& rank : values) {
    REQUIRE(encode(type, packed(type, rank, options.offset).data() + options.offset, n, window, row.data()));
    REQUIRE(row.back() == -1);
    for (std::size_t i = 0; i + 1 < row.size(); ++i) sum[i] += row[i];
  }
  std::vector<std::byte> out(options.offset + n * element_bytes(type) + 1, std::byte{0x5A});
  decode(type, sum.data(), n, window, options.divisor, out.data() + options.offset);
  REQUIRE(out.back() == std::byte{0x5A});
  std::vector<Element> result(n);
  for (std::size_t i = 0; i < n; ++i) result[i] = reference::read(type, out.data() + options.offset, i);
  return result;
}

Element sum_of(DataType type, const std::vector<double>& values, std::uint32_t divisor = 1) {
  Values ranks;
  for (const double value : values) ranks.push_back({reference::bits_of(type, value)});
  return exact_sum(type, ranks, {.divisor = divisor})[0];
}
double sum64(const std::vector<double>& values) {
  return reference::value_of(DataType::float64, sum_of(DataType::float64, values));
}

class Source {
 public:
  explicit Source(DataType type, std::uint64_t seed = 7) : type_(type), random_(seed) {}
  // Any finite pattern, subnormals and the largest values included.
  Element any() {
    const Element magnitude = std::uniform_int_distribution<Element>(0, shape_of(type_).largest)(random_);
    return magnitude | (random_() % 2 != 0 ? sign_bit(type_) : 0);
  }
  // Exponents within `range` of the middle of the type's; now and then zeros, small integers, and the negative of `last`.
  Element near(int range, Element last) {
    const Shape shape = shape_of(type_);
    const Element roll = random_() % 16;
    if (roll == 0) return 0;
    if (roll == 1) return last ^ sign_bit(type_);
    if (roll == 2) return reference::bits_of(type_, static_cast<double>(random_() % 8));
    const int middle = static_cast<int>(shape.largest >> shape.mantissa) / 2;
    const int exponent = middle + std::uniform_int_distribution<int>(-std::min(range, middle), std::min(range, middle))(random_);
    const Element fraction = random_() & ((Element{1} << shape.mantissa) - 1);
    return (static_cast<Element>(exponent) << shape.mantissa) | fraction | (random_() % 2 != 0 ? sign_bit(type_) : 0);
  }
  std::mt19937_64& random() { return random_; }

 private:
  DataType type_;
  std::mt19937_64 random_;
};

Values random_values(Source& source, World world, std::size_t n, int range) {
  Values values(static_cast<std::size_t>(world.value), std::vector<Element>(n));
  for (std::size_t r = 0; r < values.size(); ++r)
    for (std::size_t i = 0; i < n; ++i)
      values[r][i] = range == 0 ? source.any() : source.near(range, r > 0 ? values[r - 1][i] : 0);
  return values;
}

TEST_CASE("exact: sums and averages are the true ones, rounded once") {
  for (const DataType type : kFloats) {
    Source source(type);
    for (const World world : kWorlds) {
      for (const int range : {0, 4, 20, 40, 100}) {
        const Values values = random_values(source, world, 12, range);
        for (const std::uint32_t divisor : {std::uint32_t{1}, static_cast<std::uint32_t>(world.value)}) {
          const std::vector<Element> sums = exact_sum(type, values, {.divisor = divisor});
          for (std::size_t i = 0; i < sums.size(); ++i) {
            INFO(name_of(type) << ", world " << world.value << ", range " << range << ", divisor " << divisor << ", element "
                               << i);
            REQUIRE(sums[i] == reference_sum(type, values, i, divisor));
          }
        }
      }
    }
  }
}

TEST_CASE("exact: any divisor") {
  for (const DataType type : kFloats) {
    Source source(type);
    for (const int range : {0, 6, 30}) {
      const Values values = random_values(source, World{5}, 20, range);
      for (const std::uint32_t divisor : {6U, 10U, 1000U, 1000003U, 0x7FFFFFFFU, 0x80000000U, 0x80000001U, 0xFFFFFFFFU}) {
        const std::vector<Element> means = exact_sum(type, values, {.divisor = divisor});
        for (std::size_t i = 0; i < means.size(); ++i) {
          INFO(name_of(type) << ", range " << range << ", divisor " << divisor << ", element " << i);
          REQUIRE(means[i] == reference_sum(type, values, i, divisor));
        }
      }
    }
  }
}

TEST_CASE("exact: every pair of float8 values") {
  for (const DataType type : {DataType::float8_e4m3, DataType::float8_e5m2}) {
    std::vector<Element> finite;
    for (Element e = 0; e < 256; ++e)
      if (std::isfinite(reference::value_of(type, e))) finite.push_back(e);
    for (const Element a : finite) {
      const Values values = {std::vector<Element>(finite.size(), a), finite};
      const std::vector<Element> sums = exact_sum(type, values);
      for (std::size_t i = 0; i < finite.size(); ++i) REQUIRE(sums[i] == reference_sum(type, values, i, 1));
    }
  }
}

TEST_CASE("exact: what cancels leaves the rest") {
  CHECK(sum64({1e300, 1, -1e300}) == 1);
  CHECK(sum64({1e300, 1e-300, -1e300}) == 1e-300);
  CHECK(sum64({1.7e308, 1.7e308, -1.7e308}) == 1.7e308);
  CHECK(sum64({1.7e308, 5e-324, 1.7e308, -1.7e308, -1.7e308}) == 5e-324);
  CHECK(sum_of(DataType::float32, {3e38, 3e38, 1e-45, -3e38, -3e38}) == 1);
  CHECK(sum_of(DataType::float16, {65504, 6e-8, 65504, -65504, -65504}) == 1);
  CHECK(sum_of(DataType::float64, {1, -1}) == 0);
  const float power = std::ldexp(1.0F, -149 + 64);  // lies in the third of three digits, above two zeros
  CHECK(sum_of(DataType::float32, {-power, 1e-45, -1e-45}) == std::bit_cast<std::uint32_t>(-power));
}

TEST_CASE("exact: ties go to even, and the smallest surplus decides") {
  const double ulp = std::ldexp(1.0, -52);
  const double least = std::numeric_limits<double>::denorm_min();
  CHECK(sum64({1, ulp / 2}) == 1);
  CHECK(sum64({1 + ulp, ulp / 2}) == 1 + 2 * ulp);
  CHECK(sum64({1, ulp / 2, least}) == 1 + ulp);
  CHECK(sum64({1 + ulp, ulp / 2, -least}) == 1 + ulp);
  CHECK(sum64({-1, -ulp / 2, -least}) == -1 - ulp);
  // An average's surplus may be far below the digits that are divided, or the rest of the division alone.
  const auto third = [](std::vector<double> values, double surplus) {
    values.push_back(surplus);
    return value_of(DataType::float64, sum_of(DataType::float64, values, 3));
  };
  const std::vector<double> thrice = {1, 1, 1, ulp / 2, ulp / 2, ulp / 2};
  CHECK(third(thrice, 0) == 1);
  for (const double surplus : {std::ldexp(1.0, -70), std::ldexp(1.0, -85), std::ldexp(1.0, -94), std::ldexp(1.0, -95),
                               std::ldexp(1.0, -110), std::ldexp(1.0, -130), least}) {
    CHECK(third(thrice, surplus) == 1 + ulp);
    CHECK(third(thrice, -surplus) == 1);
  }
  // Added one by one the small ones would be lost.
  CHECK(sum64({1, ulp / 4, ulp / 4, ulp / 4}) == 1 + ulp);
}

TEST_CASE("exact: subnormals, and results that become subnormal") {
  for (const DataType type : kFloats) {
    const Shape shape = shape_of(type);
    const Element normal = Element{1} << shape.mantissa;
    CHECK(exact_sum(type, {{1}, {1}, {1}})[0] == 3);
    CHECK(exact_sum(type, {{normal}, {1 | sign_bit(type)}})[0] == normal - 1);
    CHECK(exact_sum(type, {{normal - 1}, {1}})[0] == normal);
    CHECK(exact_sum(type, {{1}, {0}}, {.divisor = 2})[0] == 0);  // half of the smallest: even
    CHECK(exact_sum(type, {{3}, {0}}, {.divisor = 2})[0] == 2);
    CHECK(exact_sum(type, {{2}, {0}, {0}}, {.divisor = 3})[0] == 1);
    CHECK(exact_sum(type, {{1}, {0}, {0}}, {.divisor = 3})[0] == 0);
    CHECK(exact_sum(type, {{1 | sign_bit(type)}}, {.divisor = 1000})[0] == sign_bit(type));
    CHECK(exact_sum(type, {{1 | sign_bit(type)}}, {.divisor = 1024})[0] == sign_bit(type));
  }
}

TEST_CASE("exact: too large results are infinite, in float8 the largest finite value") {
  for (const DataType type : kFloats) {
    const Shape shape = shape_of(type);
    const Element largest = shape.largest;
    CHECK(exact_sum(type, {{largest}, {largest}})[0] == shape.overflow);
    CHECK(exact_sum(type, {{largest | sign_bit(type)}, {largest | sign_bit(type)}})[0] == (shape.overflow | sign_bit(type)));
    CHECK(exact_sum(type, {{largest}, {1}})[0] == largest);
    CHECK(exact_sum(type, {{largest}, {largest}, {largest}}, {.divisor = 3})[0] == largest);
    CHECK(exact_sum(type, {{largest}, {largest}}, {.divisor = 2})[0] == largest);
  }
  const float ulp = std::ldexp(1.0F, 104);
  const double largest = std::numeric_limits<float>::max();
  CHECK(sum_of(DataType::float32, {largest, ulp / 2}) == 0x7F800000);
  CHECK(sum_of(DataType::float32, {largest, ulp / 2, -1e-45}) == 0x7F7FFFFF);
}

TEST_CASE("exact: infinities and NaN") {
  for (const DataType type : kFloats) {
    const Shape shape = shape_of(type);
    const Element one = reference::bits_of(type, 1);
    const Element minus = sign_bit(type);
    const auto both_ways = [&](Element a, Element b) {
      const std::vector<Element> sums = exact_sum(type, {{a, one, b}, {b, one, a}});
      CHECK(sums[0] == sums[2]);
      CHECK(sums[1] == reference::bits_of(type, 2));  // its neighbours are none of its business
      return sums[0];
    };
    CHECK(both_ways(shape.nan, one) == shape.nan);
    CHECK(both_ways(shape.nan | minus, one) == shape.nan);
    CHECK(both_ways(shape.nan, shape.nan | minus) == shape.nan);
    if (shape.infinity == 0) continue;
    CHECK(both_ways(shape.infinity, one) == shape.infinity);
    CHECK(both_ways(shape.infinity | minus, one) == (shape.infinity | minus));
    CHECK(both_ways(shape.infinity, shape.infinity) == shape.infinity);
    CHECK(both_ways(shape.infinity | minus, shape.infinity | minus) == (shape.infinity | minus));
    CHECK(both_ways(shape.infinity, shape.infinity | minus) == shape.nan);
    CHECK(both_ways(shape.infinity, shape.nan) == shape.nan);
    CHECK(both_ways(shape.infinity, shape.largest | minus) == shape.infinity);
    CHECK(exact_sum(type, {{shape.infinity}, {0}}, {.divisor = 3})[0] == shape.infinity);
  }
}

TEST_CASE("exact: a zero sum is +0") {
  for (const DataType type : kFloats) {
    const Element one = reference::bits_of(type, 1);
    CHECK(exact_sum(type, {{sign_bit(type)}, {sign_bit(type)}})[0] == 0);
    CHECK(exact_sum(type, {{one | sign_bit(type)}, {one}})[0] == 0);
    CHECK(exact_sum(type, {{0, one}, {0, one | sign_bit(type)}}) == std::vector<Element>{0, 0});
  }
}

TEST_CASE("exact: a thousand contributions in any order, in any grouping, give the same bits") {
  for (const DataType type : kFloats) {
    Source source(type);
    const Values values = random_values(source, World{1000}, 3, 12);
    std::vector<std::byte> bytes;
    ExactNeeds needs;
    for (const auto& rank : values) needs = joined(needs, scan(type, packed(type, rank).data(), 3));
    const ExactWindow window = window_for(needs);
    const std::size_t words = 3 * window.words();
    std::vector<std::size_t> order(values.size());
    for (std::size_t r = 0; r < order.size(); ++r) order[r] = r;
    std::vector<Element> wanted(3);
    for (std::size_t i = 0; i < 3; ++i) wanted[i] = reference_sum(type, values, i, 1);

    for (const World world : kWorlds) {  // each adds what falls to it, then the partial sums are added
      std::shuffle(order.begin(), order.end(), source.random());
      std::vector<std::vector<std::int64_t>> partial(static_cast<std::size_t>(world.value), std::vector<std::int64_t>(words));
      std::vector<std::int64_t> row(words);
      for (std::size_t k = 0; k < order.size(); ++k) {
        REQUIRE(encode(type, packed(type, values[order[k]]).data(), 3, window, row.data()));
        for (std::size_t w = 0; w < words; ++w) partial[k % partial.size()][w] += row[w];
      }
      for (std::size_t r = 1; r < partial.size(); ++r)
        for (std::size_t w = 0; w < words; ++w) partial[0][w] += partial[r][w];
      bytes.assign(3 * element_bytes(type), std::byte{});
      decode(type, partial[0].data(), 3, window, 1, bytes.data());
      for (std::size_t i = 0; i < 3; ++i) REQUIRE(reference::read(type, bytes.data(), i) == wanted[i]);
    }
  }
}

TEST_CASE("exact: ranks that contribute zeros change nothing, nor does a wider window") {
  for (const DataType type : kFloats) {
    Source source(type);
    const int digits = window_for(scan(type, packed(type, {1, shape_of(type).largest}).data(), 2)).digits;
    for (const int range : {0, 8, 40}) {
      for (const World world : kWorlds) {
        Values values = random_values(source, world, 7, range);
        const std::vector<Element> sums = exact_sum(type, values);
        CHECK(sums == exact_sum(type, values, {.wider = {digits - 1, 0, 0}}));
        CHECK(sums == exact_sum(type, values, {.wider = {digits - 1, 0, 1}}));
        CHECK(sums == exact_sum(type, values, {.wider = {0, 0, 1}}));
        for (int more = world.value; more < 9; ++more) {
          values.insert(values.begin() + more % world.value, std::vector<Element>(7, more % 2 == 0 ? 0 : sign_bit(type)));
          CHECK(sums == exact_sum(type, values));
        }
      }
    }
  }
}

TEST_CASE("exact: any number of elements at any address") {
  for (const DataType type : kFloats) {
    Source source(type);
    for (const std::size_t n : {0U, 1U, 7U, 1000U}) {
      for (const std::size_t offset : {1U, 2U, 3U, 4U}) {
        const Values values = random_values(source, World{3}, n, 30);
        const std::vector<Element> sums = exact_sum(type, values, {.offset = offset});
        for (std::size_t i = 0; i < n; i += 37) REQUIRE(sums[i] == reference_sum(type, values, i, 1));
      }
    }
  }
}

TEST_CASE("exact: rows of 2^31 - 1 ranks do not overflow") {
  constexpr std::uint32_t kMost = 0x7FFFFFFF;
  for (const DataType type : kFloats) {
    Source source(type);
    const Shape shape = shape_of(type);
    std::vector<Element> elements = {shape.largest, shape.largest | sign_bit(type), 1, sign_bit(type) | 1};
    for (int i = 0; i < 100; ++i) elements.push_back(source.any());
    for (const std::size_t n : {std::size_t{1}, std::size_t{2}, elements.size()}) {  // narrow windows first
      const auto bytes = packed(type, elements);
      const ExactWindow window = window_for(scan(type, bytes.data(), n));
      std::vector<std::int64_t> rows(n * window.words());
      REQUIRE(encode(type, bytes.data(), n, window, rows.data()));
      for (auto& word : rows) word *= kMost;
      std::vector<std::byte> out(n * element_bytes(type));
      decode(type, rows.data(), n, window, kMost, out.data());
      for (std::size_t i = 0; i < n; ++i) {
        const Element zero_is_positive = elements[i] == sign_bit(type) ? 0 : elements[i];
        REQUIRE(reference::read(type, out.data(), i) == zero_is_positive);
      }
    }
  }
}

TEST_CASE("exact: the window holds what the data need, and no more") {
  const auto window_of = [](DataType type, const std::vector<double>& values) {
    std::vector<Element> elements;
    for (const double value : values) elements.push_back(reference::bits_of(type, value));
    return window_for(scan(type, packed(type, elements).data(), elements.size()));
  };
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(window_of(DataType::float64, {0, -0.0}) == ExactWindow{0, 0, false});
  CHECK(window_of(DataType::float64, {}) == ExactWindow{0, 0, false});
  CHECK(window_of(DataType::float64, {infinity}) == ExactWindow{0, 0, true});
  CHECK(window_of(DataType::float64, {0, 1, 2, 3, 255}) == ExactWindow{33, 1, false});  // 1 is 2^(33 * 32 + 18) units
  CHECK(window_of(DataType::float64, {std::ldexp(1.0, -19)}) == ExactWindow{32, 1, false});
  CHECK(window_of(DataType::float64, {1, 16384}) == ExactWindow{33, 2, false});
  CHECK(window_of(DataType::float64, {5e-324, 1.7976931348623157e308, infinity}) == ExactWindow{0, kExactDigits, true});
  CHECK(window_of(DataType::float32, {1e-45, 3e38}) == ExactWindow{0, 9, false});
  CHECK(window_of(DataType::float16, {6e-8, 65504}) == ExactWindow{0, 2, false});
  CHECK(window_of(DataType::float8_e5m2, {1.6e-5, 57344}) == ExactWindow{0, 1, false});
  CHECK(ExactWindow{33, 2, true}.words() == 3);
}

TEST_CASE("exact: a factor's products are rounded like those of the reduction kernels") {
  for (const DataType type : kFloats) {
    Source source(type);
    const std::size_t n = 5000;  // more than one block
    const Element factor = reference::bits_of(type, 0.3);
    const Scale scale = make_scale(type, ReduceOp::premul_sum, World{1}, &factor);
    std::vector<Element> elements(n), products(n);
    for (std::size_t i = 0; i < n; ++i) {
      elements[i] = i % 100 == 99 ? shape_of(type).nan : source.near(9, 0);
      products[i] = reference::load(type, ReduceOp::premul_sum, elements[i], scale);
    }
    const auto raw = packed(type, elements, 1);
    const auto multiplied = packed(type, products);
    const ExactNeeds needs = scan(type, raw.data() + 1, n, &factor);
    CHECK(needs == scan(type, multiplied.data(), n));
    const ExactWindow window = window_for(needs);
    std::vector<std::int64_t> rows(n * window.words()), wanted(n * window.words());
    CHECK(encode(type, raw.data() + 1, n, window, rows.data(), &factor));
    CHECK(encode(type, multiplied.data(), n, window, wanted.data()));
    CHECK(rows == wanted);
  }
}

TEST_CASE("exact: an element that the window does not hold is reported, and stays inside its row") {
  const auto fits = [](DataType type, Element e, ExactWindow window) {
    std::vector<std::int64_t> rows(window.words() + 2, 77);
    const bool result = encode(type, packed(type, {e}).data(), 1, window, rows.data() + 1);
    CHECK((rows.front() == 77 && rows.back() == 77));
    return result;
  };
  const Element one = 0x3F800000;  // 2^(4 * 32 + 21) units
  for (const bool specials : {false, true}) {
    CHECK(fits(DataType::float32, one, {4, 1, specials}));
    CHECK(fits(DataType::float32, one, {2, 7, specials}));
    CHECK_FALSE(fits(DataType::float32, one, {5, 1, specials}));
    CHECK_FALSE(fits(DataType::float32, one, {0, 4, specials}));
    CHECK_FALSE(fits(DataType::float32, one, {0, 2, specials}));
    CHECK_FALSE(fits(DataType::float32, one, {0, 0, specials}));
    CHECK_FALSE(fits(DataType::float32, one + 1, {4, 1, specials}));  // its lowest bit is in digit 3
    CHECK(fits(DataType::float32, 0, {0, 0, specials}));
    CHECK(fits(DataType::float32, 0x7F800000, {4, 1, specials}) == specials);
    CHECK_FALSE(fits(DataType::float64, 0x3FF0000000000001, {0, 33, specials}));
  }
}

TEST_CASE("exact: integers, and windows of other types, are refused") {
  std::int64_t row[2] = {};
  double value = 0;
  CHECK_THROWS_AS(scan(DataType::int32, &value, 1), BrokenExpectation);
  CHECK_THROWS_AS(decode(DataType::float16, row, 1, {1, 2, false}, 1, &value), BrokenExpectation);
  CHECK_THROWS_AS(decode(DataType::float16, row, 1, {0, 2, false}, 0, &value), BrokenExpectation);
  CHECK_THROWS_AS((void)encode(DataType::float64, &value, 1, {-1, 1, false}, row), BrokenExpectation);
}

}  // namespace
