// SPDX-License-Identifier: Apache-2.0
#include "perf/element.h"

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

using namespace shoal::perf;

namespace {

const ElementType& type_named(const char* name) {
  const ElementType* type = find_element_type(name);
  REQUIRE(type != nullptr);
  return *type;
}

}  // namespace

TEST_CASE("every small float survives decode and encode") {
  for (const char* name : {"half", "bfloat16", "f8e4m3", "f8e5m2"}) {
    const ElementType& type = type_named(name);
    CAPTURE(name);
    int wrong = 0;
    for (Bits bits = 0; bits < (Bits{1} << (8 * type.bytes)); ++bits) {
      if (is_nan(type, bits)) {
        wrong += is_nan(type, encode(type, decode(type, bits))) ? 0 : 1;
      } else {
        wrong += encode(type, decode(type, bits)) == bits ? 0 : 1;
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("known patterns") {
  const auto check = [](const char* name, double value, Bits bits) {
    CAPTURE(name, value);
    CHECK(encode(type_named(name), value) == bits);
    CHECK(decode(type_named(name), bits) == value);
  };
  check("half", 1.0, 0x3c00);
  check("half", 65504.0, 0x7bff);
  check("half", std::ldexp(1.0, -24), 0x0001);
  check("bfloat16", -2.0, 0xc000);
  check("bfloat16", 3.140625, 0x4049);
  check("f8e4m3", 448.0, 0x7e);
  check("f8e4m3", std::ldexp(1.0, -9), 0x01);
  check("f8e4m3", 1.0, 0x38);
  check("f8e5m2", 57344.0, 0x7b);
  check("f8e5m2", 1.0, 0x3c);
  check("float", 1.5, 0x3fc00000);
  check("double", -0.0, 0x8000000000000000);
}

TEST_CASE("rounding is to nearest, ties to even, into infinity or NaN beyond the largest") {
  CHECK(encode(type_named("f8e4m3"), 17.0) == encode(type_named("f8e4m3"), 16.0));
  CHECK(encode(type_named("f8e4m3"), 19.0) == encode(type_named("f8e4m3"), 20.0));
  CHECK(encode(type_named("f8e4m3"), 464.0) == 0x7e);  // half way to 480: even
  CHECK(is_nan(type_named("f8e4m3"), encode(type_named("f8e4m3"), 465.0)));
  CHECK(is_infinite(type_named("half"), encode(type_named("half"), 65520.0)));
  CHECK(encode(type_named("half"), 65519.0) == 0x7bff);
  CHECK(encode(type_named("half"), std::ldexp(1.0, -25)) == 0);
  CHECK(encode(type_named("half"), std::ldexp(1.5, -25)) == 1);
}

TEST_CASE("float and double encode as the machine does") {
  std::uint64_t state = 1;
  int wrong = 0;
  for (int i = 0; i < 20000; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    const double value = std::bit_cast<double>(state);
    if (std::isnan(value)) continue;
    wrong += encode(type_named("double"), value) == state ? 0 : 1;
    const double scaled = std::ldexp(value, -std::ilogb(value) + static_cast<int>(state % 300) - 150);
    wrong += encode(type_named("float"), scaled) == std::bit_cast<std::uint32_t>(static_cast<float>(scaled)) ? 0 : 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("integers wrap and know their sign") {
  CHECK(to_signed(type_named("int8"), 0xff) == -1);
  CHECK(to_signed(type_named("int32"), 0x80000000) == std::numeric_limits<std::int32_t>::min());
  CHECK(from_integer(type_named("uint8"), 257) == 1);
  CHECK(from_integer(type_named("uint64"), ~std::uint64_t{0}) == ~std::uint64_t{0});
}

TEST_CASE("ulps are counted across zero and are endless for NaN") {
  const ElementType& half = type_named("half");
  CHECK(ulps_between(half, 0x3c00, 0x3c02) == 2);
  CHECK(ulps_between(half, 0x0001, 0x8001) == 2);
  CHECK(ulps_between(half, 0x0000, 0x8000) == 0);
  CHECK(ulps_between(half, 0x7e00, 0x3c00) == std::numeric_limits<std::uint64_t>::max());
  CHECK(ulps_between(type_named("double"), encode(type_named("double"), 1e308), encode(type_named("double"), -1e308)) >
        (std::uint64_t{1} << 62));
}
