// SPDX-License-Identifier: Apache-2.0
#include "device/convert.h"

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace {

using namespace shoal::device;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// A format by its definition: sign, exponent, mantissa.
struct Format {
  int mantissa;
  int bias;
  std::uint32_t largest;  // bits of the largest finite value
  float (*from)(std::uint32_t);
  std::uint32_t (*to)(float);
  bool saturates;
  std::uint32_t sign() const { return std::bit_floor(largest) << 1; }
};

const Format kFormats[] = {
    {10, 15, 0x7BFF, [](std::uint32_t b) { return from_float16(static_cast<std::uint16_t>(b)); },
     [](float v) -> std::uint32_t { return to_float16(v); }, false},
    {7, 127, 0x7F7F, [](std::uint32_t b) { return from_bfloat16(static_cast<std::uint16_t>(b)); },
     [](float v) -> std::uint32_t { return to_bfloat16(v); }, false},
    {3, 7, 0x7E, [](std::uint32_t b) { return from_float8_e4m3(static_cast<std::uint8_t>(b)); },
     [](float v) -> std::uint32_t { return to_float8_e4m3(v); }, true},
    {2, 15, 0x7B, [](std::uint32_t b) { return from_float8_e5m2(static_cast<std::uint8_t>(b)); },
     [](float v) -> std::uint32_t { return to_float8_e5m2(v); }, true},
};

double defined_value(const Format& f, std::uint32_t magnitude) {
  const auto exponent = static_cast<int>(magnitude >> f.mantissa);
  const double fraction = std::ldexp(magnitude & ((1U << f.mantissa) - 1), -f.mantissa);
  return exponent == 0 ? std::ldexp(fraction, 1 - f.bias) : std::ldexp(1 + fraction, exponent - f.bias);
}

TEST_CASE("convert: every finite bit pattern has the value that its fields define, and comes back from it") {
  for (const Format& f : kFormats) {
    for (std::uint32_t bits = 0; bits <= f.largest; ++bits) {
      const auto value = static_cast<float>(defined_value(f, bits));
      REQUIRE(std::bit_cast<std::uint32_t>(f.from(bits)) == std::bit_cast<std::uint32_t>(value));
      REQUIRE(std::bit_cast<std::uint32_t>(f.from(bits | f.sign())) == std::bit_cast<std::uint32_t>(-value));
      REQUIRE(f.to(value) == bits);
      REQUIRE(f.to(-value) == (bits | f.sign()));
    }
  }
}

TEST_CASE("convert: between two neighbours the nearer one is taken, and the even one from the middle") {
  for (const Format& f : kFormats) {
    for (std::uint32_t bits = 0; bits < f.largest; ++bits) {
      const auto middle = static_cast<float>((defined_value(f, bits) + defined_value(f, bits + 1)) / 2);  // exact in float32
      const std::uint32_t even = bits + (bits & 1);
      for (const std::uint32_t sign : {0U, f.sign()}) {
        const float side = sign == 0 ? 1.0F : -1.0F;
        REQUIRE(f.to(side * middle) == (even | sign));
        REQUIRE(f.to(side * std::nextafter(middle, 0.0F)) == (bits | sign));
        REQUIRE(f.to(side * std::nextafter(middle, kInfinity)) == ((bits + 1) | sign));
      }
    }
  }
}

TEST_CASE("convert: beyond the largest value the wide formats overflow and the 8-bit ones saturate") {
  CHECK(to_float16(65504.0F) == 0x7BFF);
  CHECK(to_float16(65519.99F) == 0x7BFF);
  CHECK(to_float16(65520.0F) == 0x7C00);
  CHECK(to_float16(-65520.0F) == 0xFC00);
  CHECK(to_float16(std::numeric_limits<float>::max()) == 0x7C00);
  const float bf16_edge = std::bit_cast<float>(0x7F7F8000U);  // the middle between the largest value and infinity
  CHECK(to_bfloat16(std::nextafter(bf16_edge, 0.0F)) == 0x7F7F);
  CHECK(to_bfloat16(bf16_edge) == 0x7F80);
  CHECK(to_float8_e4m3(448.0F) == 0x7E);
  CHECK(to_float8_e4m3(464.0F) == 0x7E);
  CHECK(to_float8_e4m3(1e30F) == 0x7E);
  CHECK(to_float8_e4m3(-1e30F) == 0xFE);
  CHECK(to_float8_e5m2(61440.0F) == 0x7B);
  CHECK(to_float8_e5m2(std::numeric_limits<float>::max()) == 0x7B);
  CHECK(to_float8_e5m2(-70000.0F) == 0xFB);
}

TEST_CASE("convert: infinity stays, but is 448 where there is none") {
  CHECK(to_float16(kInfinity) == 0x7C00);
  CHECK(to_float16(-kInfinity) == 0xFC00);
  CHECK(to_bfloat16(-kInfinity) == 0xFF80);
  CHECK(to_float8_e5m2(kInfinity) == 0x7C);
  CHECK(to_float8_e4m3(kInfinity) == 0x7E);
  CHECK(to_float8_e4m3(-kInfinity) == 0xFE);
  CHECK(from_float16(0x7C00) == kInfinity);
  CHECK(from_bfloat16(0xFF80) == -kInfinity);
  CHECK(from_float8_e5m2(0xFC) == -kInfinity);
}

TEST_CASE("convert: NaN stays NaN, whatever its payload") {
  for (const std::uint32_t payload : {0x00000001U, 0x00001FFFU, 0x00200000U, 0x00400000U, 0x007FFFFFU}) {
    for (const std::uint32_t sign : {0U, 0x80000000U}) {
      const float value = std::bit_cast<float>(sign | 0x7F800000U | payload);
      for (const Format& f : kFormats) REQUIRE(std::isnan(f.from(f.to(value))));
    }
  }
  for (std::uint32_t bits = 0x7C01; bits <= 0x7FFF; ++bits) {
    REQUIRE(std::isnan(from_float16(static_cast<std::uint16_t>(bits))));
    REQUIRE(std::isnan(from_float16(static_cast<std::uint16_t>(bits | 0x8000))));
  }
  for (const int bits : {0x7F, 0xFF}) CHECK(std::isnan(from_float8_e4m3(static_cast<std::uint8_t>(bits))));
  for (const int bits : {0x7D, 0x7E, 0x7F, 0xFD}) CHECK(std::isnan(from_float8_e5m2(static_cast<std::uint8_t>(bits))));
  CHECK(std::isnan(from_float16(to_float16(kNaN))));
}

TEST_CASE("convert: values far below the smallest subnormal become zeros with their sign") {
  for (const Format& f : kFormats) {
    CHECK(f.to(0.0F) == 0);
    CHECK(f.to(-0.0F) == f.sign());
    if (f.bias == 127) continue;  // has float32's range
    CHECK(f.to(std::numeric_limits<float>::denorm_min()) == 0);
    CHECK(f.to(-1e-30F) == f.sign());
  }
}

}  // namespace
