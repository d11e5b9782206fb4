// SPDX-License-Identifier: Apache-2.0
// What users of collective libraries ran into, at the level of one kernel: NaN under max and min, low-precision sums, averages
// that overflow on the way, odd pointers, wrap-around, and the edge of float16.
#include <algorithm>
#include <array>
#include <bit>
#include <catch2/catch.hpp>
#include <limits>
#include <random>
#include <vector>

#include "device/instruction_sets.h"
#include "device/reference.h"

namespace {

using namespace shoal;
using namespace shoal::device;
using reference::Element;

constexpr DataType kFloats[] = {DataType::float16, DataType::bfloat16,    DataType::float32,
                                DataType::float64, DataType::float8_e4m3, DataType::float8_e5m2};
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Each of `ranks` holds n equal elements; folds them in order, as a ring does, and gives the last element.
Element fold(DataType type, ReduceOp op, const std::vector<Element>& ranks, std::size_t n = 67) {
  const std::size_t bytes = n * element_bytes(type);
  std::vector<std::byte> total(bytes);
  std::vector<std::byte> input(bytes);
  const Scale scale = make_scale(type, op, World{static_cast<std::int32_t>(ranks.size())}, &ranks.front());
  const ReduceKernels& set = kernels(type, op);
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    for (std::size_t i = 0; i < n; ++i) reference::write(type, input.data(), i, ranks[r]);
    if (r == 0)
      set.load_input({.out = total.data()}, input.data(), n, scale);
    else if (r + 1 < ranks.size())
      set.combine_input({.out = total.data()}, input.data(), total.data(), n, scale);
    else
      set.combine_input_final({.out = total.data()}, input.data(), total.data(), n, scale);
  }
  for (std::size_t i = 1; i < n; ++i) REQUIRE(reference::read(type, total.data(), i) == reference::read(type, total.data(), 0));
  return reference::read(type, total.data(), n - 1);
}

Element fold_values(DataType type, ReduceOp op, const std::vector<double>& values) {
  std::vector<Element> ranks;
  for (const double v : values) ranks.push_back(reference::bits_of(type, v));
  return fold(type, op, ranks);
}

TEST_CASE("max and min: a NaN on any rank is the result, in every order") {
  for_each_instruction_set([] {
    for (const DataType type : kFloats) {
      std::array<double, 3> values = {5, kNaN, 1};
      std::array<int, 3> order = {0, 1, 2};
      do {
        const std::vector<double> ranks = {values[static_cast<std::size_t>(order[0])], values[static_cast<std::size_t>(order[1])],
                                           values[static_cast<std::size_t>(order[2])]};
        CHECK(reference::is_nan(type, fold_values(type, ReduceOp::max, ranks)));
        CHECK(reference::is_nan(type, fold_values(type, ReduceOp::min, ranks)));
      } while (std::next_permutation(order.begin(), order.end()));
      for (std::size_t world = 2; world <= 8; ++world)
        for (std::size_t holder = 0; holder < world; ++holder) {
          std::vector<double> ranks(world, 2.0);
          ranks[holder] = -kNaN;
          CHECK(reference::is_nan(type, fold_values(type, ReduceOp::max, ranks)));
          CHECK(reference::is_nan(type, fold_values(type, ReduceOp::min, ranks)));
        }
    }
  });
}

TEST_CASE("max and min: the result has the same bits whichever operand came first") {
  for_each_instruction_set([] {
    for (const DataType type : kFloats) {
      const std::vector<double> values = {0.0, -0.0, 1.0, -1.0, kInfinity, -kInfinity, kNaN, 0x1p-9, -0x1p-9};
      for (const double x : values)
        for (const double y : values)
          for (const ReduceOp op : {ReduceOp::max, ReduceOp::min})
            CHECK(fold_values(type, op, {x, y}) == fold_values(type, op, {y, x}));
      CHECK(fold_values(type, ReduceOp::max, {-0.0, 0.0}) == reference::bits_of(type, 0.0));
      CHECK(fold_values(type, ReduceOp::min, {0.0, -0.0}) == reference::bits_of(type, -0.0));
      CHECK(fold_values(type, ReduceOp::max, {-kInfinity, -3.0}) == reference::bits_of(type, -3.0));
      CHECK(fold_values(type, ReduceOp::min, {kInfinity, 3.0}) == reference::bits_of(type, 3.0));
    }
  });
}

TEST_CASE("sum: bfloat16 is added in float32 and rounded once, ties to even") {
  for_each_instruction_set([] {
    const auto sum = [](double x, double y) {
      return reference::value_of(DataType::bfloat16, fold_values(DataType::bfloat16, ReduceOp::sum, {x, y}));
    };
    CHECK(sum(256, 7) == 264);  // 263 lies between 262 and 264
    CHECK(sum(256, 1) == 256);
    CHECK(sum(258, 1) == 260);
    CHECK(sum(256, 0x1.02p0) == 258);  // just beyond the middle
    CHECK(sum(-256, -7) == -264);
  });
}

TEST_CASE("avg: ten ranks with the largest value average to it, near enough, and never to infinity") {
  for_each_instruction_set([] {
    for (const DataType type : kFloats)
      for (const double sign : {1.0, -1.0}) {
        const double largest = sign * reference::largest(type);
        for (const std::size_t world : {2, 3, 7, 10, 64}) {
          const double average = reference::value_of(type, fold_values(type, ReduceOp::avg, std::vector<double>(world, largest)));
          CHECK(std::isfinite(average));
          if (type == DataType::float32 || type == DataType::float64) CHECK(average == Approx(largest).epsilon(1e-5));
          if (type == DataType::float16 && world == 10) CHECK(average == Approx(largest).epsilon(2e-3));  // float16 at every hop
        }
      }
  });
}

TEST_CASE("avg: an infinity or NaN among the inputs stays") {
  for_each_instruction_set([] {
    for (const DataType type :
         {DataType::float16, DataType::bfloat16, DataType::float32, DataType::float64, DataType::float8_e5m2}) {
      CHECK(reference::value_of(type, fold_values(type, ReduceOp::avg, {1, kInfinity, 2})) == kInfinity);
      CHECK(reference::value_of(type, fold_values(type, ReduceOp::avg, {-kInfinity, 1})) == -kInfinity);
      CHECK(reference::is_nan(type, fold_values(type, ReduceOp::avg, {kInfinity, -kInfinity})));
      CHECK(reference::is_nan(type, fold_values(type, ReduceOp::avg, {1, kNaN, 2})));
    }
    CHECK(reference::is_nan(DataType::float8_e4m3, fold_values(DataType::float8_e4m3, ReduceOp::avg, {1, kNaN})));
  });
}

TEST_CASE("sum: what averages clamp still overflows, except in the 8-bit formats") {
  for_each_instruction_set([] {
    for (const DataType type : kFloats) {
      const double largest = reference::largest(type);
      const double total = reference::value_of(type, fold_values(type, ReduceOp::sum, {-largest, -largest}));
      CHECK(total == (element_bytes(type) == 1 ? -largest : -kInfinity));
    }
  });
}

TEST_CASE("avg: three magnitudes agree with float64 within a rounding a rank") {
  for_each_instruction_set([] {
    for (const DataType type : {DataType::float16, DataType::bfloat16, DataType::float32, DataType::float64}) {
      const double epsilon = type == DataType::float16 ? 0x1p-11 : type == DataType::bfloat16 ? 0x1p-8 : 0x1p-24;
      for (const double base : {1.0, 0.37, 1000.0}) {
        const double average = reference::value_of(type, fold_values(type, ReduceOp::avg, {base, base * 10, base * 0.1}));
        CHECK(average == Approx(base * 3.7).epsilon(4 * epsilon));
      }
    }
  });
}

TEST_CASE("avg: integers sum, wrap, and divide the wrapped sum toward zero") {
  for_each_instruction_set([] {
    CHECK(fold(DataType::int8, ReduceOp::avg, {0xFE, 0xFD}) == 0xFE);                          // (-2 - 3) / 2 = -2
    CHECK(fold(DataType::int8, ReduceOp::avg, {120, 100}) == static_cast<std::uint8_t>(-18));  // -36 / 2
    CHECK(fold(DataType::uint8, ReduceOp::avg, {200, 101}) == 22);                             // 45 / 2
    CHECK(fold(DataType::int32, ReduceOp::avg, {0x7FFFFFFF, 1}) == 0xC0000000);
    CHECK(fold(DataType::int64, ReduceOp::avg, {static_cast<Element>(-7), 0, 0}) == static_cast<Element>(-2));
    CHECK(fold(DataType::uint64, ReduceOp::avg, {~Element{0}, 0, 0}) == ~Element{0} / 3);
  });
}

TEST_CASE("integers wrap in two's complement") {
  for_each_instruction_set([] {
    constexpr Element kMin64 = Element{1} << 63;
    CHECK(fold(DataType::int8, ReduceOp::sum, {120, 100}) == static_cast<std::uint8_t>(-36));
    CHECK(fold(DataType::uint8, ReduceOp::sum, {200, 100}) == 44);
    CHECK(fold(DataType::int32, ReduceOp::sum, {0x7FFFFFFF, 1}) == 0x80000000);
    CHECK(fold(DataType::int64, ReduceOp::sum, {kMin64 - 1, 1}) == kMin64);
    CHECK(fold(DataType::int8, ReduceOp::prod, {0x7F, 0x7F}) == 1);
    CHECK(fold(DataType::uint8, ReduceOp::prod, {200, 3}) == 88);
    CHECK(fold(DataType::int32, ReduceOp::prod, {0x7FFFFFFF, 2}) == 0xFFFFFFFE);
    CHECK(fold(DataType::int64, ReduceOp::prod, {kMin64 - 1, 3}) == static_cast<Element>(kMin64 - 3));
    CHECK(fold(DataType::uint64, ReduceOp::prod, {0xFFFFFFFF00000001, 0x100000001}) == Element{0xFFFFFFFF00000001} * 0x100000001);
    CHECK(fold(DataType::int64, ReduceOp::max, {kMin64, 1}) == 1);
    CHECK(fold(DataType::uint64, ReduceOp::max, {kMin64, 1}) == kMin64);
    CHECK(fold(DataType::uint64, ReduceOp::min, {kMin64, 1}) == 1);
    CHECK(fold(DataType::int32, ReduceOp::premul_sum, {0x40000000, 1}) == 0x40000000);  // factor 2^30: 2^60 + 2^30, wrapped
  });
}

TEST_CASE("float16: a million sums near the edge are each correctly rounded, infinities included") {
  constexpr std::size_t kElements = 1000003;
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-65504, 65504);
  std::vector<std::uint16_t> a(kElements);
  std::vector<std::uint16_t> b(kElements);
  std::vector<std::uint16_t> out(kElements);
  for (auto* input : {&a, &b})
    for (auto& x : *input) x = to_float16(uniform(random));
  kernels(DataType::float16, ReduceOp::sum).combine({.out = out.data(), .stream = true}, a.data(), b.data(), kElements, Scale());
  std::size_t infinite = 0;
  for (std::size_t i = 0; i < kElements; ++i) {
    const float sum =
        from_float16(a[i]) + from_float16(b[i]);  // float32 has 2 * 11 + 2 digits: rounding to it first changes nothing
    if (out[i] != to_float16(sum)) FAIL("element " << i);
    infinite += (out[i] & 0x7FFF) == 0x7C00 ? 1 : 0;
  }
  CHECK(infinite > kElements / 20);
}

TEST_CASE("pointers: offsets of 1 to 15 bytes give the same values for every type") {
  for_each_instruction_set([] {
    alignas(64) std::byte a[1100], b[1100], out[1100];
    for (int t = 0; t < kDataTypes; ++t) {
      const auto type = static_cast<DataType>(t);
      const std::size_t n = 1000 / element_bytes(type);
      for (std::size_t offset = 1; offset <= 15; ++offset)
        for (const bool stream : {false, true}) {
          for (std::size_t i = 0; i < n; ++i) {
            reference::write(type, a + offset, i, reference::bits_of(type, static_cast<double>(i % 8)));
            reference::write(type, b + 16 - offset, i, reference::bits_of(type, static_cast<double>(i % 4)));
          }
          kernels(type, ReduceOp::sum).combine({.out = out + offset, .stream = stream}, a + offset, b + 16 - offset, n, Scale());
          for (std::size_t i = 0; i < n; ++i)
            if (reference::value_of(type, reference::read(type, out + offset, i)) != static_cast<double>(i % 8 + i % 4))
              FAIL(name_of(type) << " at offset " << offset << ", element " << i);
        }
    }
  });
}

}  // namespace
