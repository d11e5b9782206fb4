// SPDX-License-Identifier: Apache-2.0
#include "perf/element.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace shoal::perf {
namespace {

constexpr std::array<ElementType, 12> kTypes = {{
    {ncclInt8, "int8", 1, Kind::signed_integer, 0, 0, false},
    {ncclUint8, "uint8", 1, Kind::unsigned_integer, 0, 0, false},
    {ncclInt32, "int32", 4, Kind::signed_integer, 0, 0, false},
    {ncclUint32, "uint32", 4, Kind::unsigned_integer, 0, 0, false},
    {ncclInt64, "int64", 8, Kind::signed_integer, 0, 0, false},
    {ncclUint64, "uint64", 8, Kind::unsigned_integer, 0, 0, false},
    {ncclFloat16, "half", 2, Kind::floating, 5, 10, true},
    {ncclFloat32, "float", 4, Kind::floating, 8, 23, true},
    {ncclFloat64, "double", 8, Kind::floating, 11, 52, true},
    {ncclBfloat16, "bfloat16", 2, Kind::floating, 8, 7, true},
    {ncclFloat8e4m3, "f8e4m3", 1, Kind::floating, 4, 3, false},
    {ncclFloat8e5m2, "f8e5m2", 1, Kind::floating, 5, 2, true},
}};

int width(const ElementType& type) { return static_cast<int>(8 * type.bytes); }
Bits mask(int bits) { return bits >= 64 ? ~Bits{0} : (Bits{1} << bits) - 1; }
Bits sign_bit(const ElementType& type) { return Bits{1} << (width(type) - 1); }
Bits magnitude(const ElementType& type, Bits bits) { return bits & mask(width(type) - 1); }
int bias(const ElementType& type) { return (1 << (type.exponent_bits - 1)) - 1; }
Bits infinity(const ElementType& type) { return mask(type.exponent_bits) << type.mantissa_bits; }
// The magnitude of the NaN that encode makes.
Bits quiet_nan(const ElementType& type) {
  return type.has_infinity ? infinity(type) | (Bits{1} << (type.mantissa_bits - 1)) : mask(width(type) - 1);
}

}  // namespace

std::span<const ElementType> element_types() { return kTypes; }

const ElementType* find_element_type(std::string_view name) {
  for (const ElementType& type : kTypes) {
    if (name == type.name) return &type;
  }
  return nullptr;
}

Bits load(const ElementType& type, const std::byte* at) {
  Bits bits = 0;
  std::memcpy(&bits, at, type.bytes);  // little-endian hosts
  return bits;
}

void store(const ElementType& type, Bits bits, std::byte* at) { std::memcpy(at, &bits, type.bytes); }

double decode(const ElementType& type, Bits bits) {
  const double sign = (bits & sign_bit(type)) != 0 ? -1.0 : 1.0;
  if (is_nan(type, bits)) return std::numeric_limits<double>::quiet_NaN();
  if (is_infinite(type, bits)) return sign * std::numeric_limits<double>::infinity();
  const auto exponent = static_cast<int>(magnitude(type, bits) >> type.mantissa_bits);
  const auto fraction = static_cast<double>(bits & mask(type.mantissa_bits));
  const double hidden = exponent == 0 ? 0.0 : std::ldexp(1.0, type.mantissa_bits);
  return sign * std::ldexp(hidden + fraction, std::max(exponent, 1) - bias(type) - type.mantissa_bits);
}

Bits encode(const ElementType& type, double value) {
  const Bits sign = std::signbit(value) ? sign_bit(type) : 0;
  if (std::isnan(value)) return sign | quiet_nan(type);
  const double size = std::fabs(value);
  const Bits overflow = type.has_infinity ? infinity(type) : quiet_nan(type);
  if (std::isinf(size)) return sign | overflow;
  if (size == 0) return sign;
  // The exponent of the unit in the last place: that of the value, not below the subnormals'.
  const int unit = std::max(std::ilogb(size), 1 - bias(type)) - type.mantissa_bits;
  const double scaled = std::nearbyint(std::ldexp(size, -unit));  // exact scaling, ties to even
  const auto significand = static_cast<Bits>(scaled);
  // A significand without its hidden bit is subnormal, its exponent field 0; a carry out of it moves to the next exponent by
  // itself.
  const Bits lowest = static_cast<Bits>(unit + type.mantissa_bits - 1 + bias(type));
  const Bits bits = (lowest << type.mantissa_bits) + significand;
  const Bits largest = type.has_infinity ? infinity(type) - 1 : quiet_nan(type) - 1;
  return sign | (bits > largest ? overflow : bits);
}

std::int64_t to_signed(const ElementType& type, Bits bits) {
  const int unused = 64 - width(type);
  return std::bit_cast<std::int64_t>(bits << unused) >> unused;
}

Bits from_integer(const ElementType& type, std::uint64_t value) { return value & mask(width(type)); }

bool is_nan(const ElementType& type, Bits bits) {
  const Bits size = magnitude(type, bits);
  return type.has_infinity ? size > infinity(type) : size == quiet_nan(type);
}

bool is_infinite(const ElementType& type, Bits bits) { return type.has_infinity && magnitude(type, bits) == infinity(type); }

std::uint64_t ulps_between(const ElementType& type, Bits a, Bits b) {
  if (is_nan(type, a) || is_nan(type, b)) return std::numeric_limits<std::uint64_t>::max();
  // Sign and magnitude as one ascending scale; both zeros are 0.
  const auto place = [&type](Bits bits) {
    const auto size = static_cast<std::int64_t>(magnitude(type, bits));
    return (bits & sign_bit(type)) != 0 ? -size : size;
  };
  const std::int64_t x = place(a), y = place(b);
  return x > y ? static_cast<std::uint64_t>(x) - static_cast<std::uint64_t>(y)
               : static_cast<std::uint64_t>(y) - static_cast<std::uint64_t>(x);
}

std::uint64_t exact_limit(const ElementType& type) { return std::uint64_t{1} << (type.mantissa_bits + 1); }

}  // namespace shoal::perf
