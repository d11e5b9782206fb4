// SPDX-License-Identifier: Apache-2.0
// One element at a time, as plainly as possible: what the kernels must give, bit for bit. Elements are their bits in a
// std::uint64_t. Value functions, any thread.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "core/types.h"
#include "device/convert.h"
#include "device/reduce.h"

namespace shoal::device::reference {

using Element = std::uint64_t;

inline double value_of(DataType type, Element e) {
  switch (type) {
    case DataType::float16: return from_float16(static_cast<std::uint16_t>(e));
    case DataType::bfloat16: return from_bfloat16(static_cast<std::uint16_t>(e));
    case DataType::float8_e4m3: return from_float8_e4m3(static_cast<std::uint8_t>(e));
    case DataType::float8_e5m2: return from_float8_e5m2(static_cast<std::uint8_t>(e));
    case DataType::float32: return std::bit_cast<float>(static_cast<std::uint32_t>(e));
    case DataType::float64: return std::bit_cast<double>(e);
    case DataType::int8: return static_cast<double>(static_cast<std::int8_t>(e));
    case DataType::int32: return static_cast<double>(static_cast<std::int32_t>(e));
    case DataType::int64: return static_cast<double>(static_cast<std::int64_t>(e));
    case DataType::uint8:
    case DataType::uint32:
    case DataType::uint64: break;
  }
  return static_cast<double>(e);
}

inline Element bits_of(DataType type, double value) {
  const auto single = static_cast<float>(value);
  switch (type) {
    case DataType::float16: return to_float16(single);
    case DataType::bfloat16: return to_bfloat16(single);
    case DataType::float8_e4m3: return to_float8_e4m3(single);
    case DataType::float8_e5m2: return to_float8_e5m2(single);
    case DataType::float32: return std::bit_cast<std::uint32_t>(single);
    case DataType::float64: return std::bit_cast<std::uint64_t>(value);
    case DataType::int8: return static_cast<std::uint8_t>(static_cast<std::int8_t>(value));
    case DataType::int32: return static_cast<std::uint32_t>(static_cast<std::int32_t>(value));
    case DataType::int64: return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
    case DataType::uint8:
    case DataType::uint32:
    case DataType::uint64: break;
  }
  return static_cast<std::uint64_t>(value);
}

inline bool is_nan(DataType type, Element e) { return !is_integer(type) && std::isnan(value_of(type, e)); }
inline bool same(DataType type, Element x, Element y) { return x == y || (is_nan(type, x) && is_nan(type, y)); }

inline bool is_signed(DataType type) { return type == DataType::int8 || type == DataType::int32 || type == DataType::int64; }
inline Element masked(DataType type, Element e) {
  const std::size_t bits = 8 * element_bytes(type);
  return bits == 64 ? e : e & ((Element{1} << bits) - 1);
}
inline std::int64_t signed_value(DataType type, Element e) {
  const auto unused = static_cast<int>(64 - 8 * element_bytes(type));
  return static_cast<std::int64_t>(e << unused) >> unused;
}

inline double largest(DataType type) {
  switch (type) {
    case DataType::float16: return 65504;
    case DataType::bfloat16: return 0x1.FEp127;
    case DataType::float8_e4m3: return 448;
    case DataType::float8_e5m2: return 57344;
    case DataType::float32: return std::numeric_limits<float>::max();
    default: return std::numeric_limits<double>::max();
  }
}

// The intermediate precision: float64 computes in itself, all others in float32.
inline double add(DataType type, double x, double y) {
  return type == DataType::float64 ? x + y : static_cast<double>(static_cast<float>(x) + static_cast<float>(y));
}
inline double multiply(DataType type, double x, double y) {
  return type == DataType::float64 ? x * y : static_cast<double>(static_cast<float>(x) * static_cast<float>(y));
}

inline Element combine_integers(DataType type, ReduceOp op, Element a, Element b) {
  const bool a_is_less = is_signed(type) ? signed_value(type, a) < signed_value(type, b) : a < b;
  switch (op) {
    case ReduceOp::prod: return masked(type, a * b);
    case ReduceOp::max: return a_is_less ? b : a;
    case ReduceOp::min: return a_is_less ? a : b;
    case ReduceOp::sum:
    case ReduceOp::avg:
    case ReduceOp::premul_sum: break;
  }
  return masked(type, a + b);
}

inline Element combine(DataType type, ReduceOp op, Element a, Element b) {
  if (is_integer(type)) return combine_integers(type, op, a, b);
  const double x = value_of(type, a);
  const double y = value_of(type, b);
  if (op == ReduceOp::max || op == ReduceOp::min) {
    if (std::isnan(x) || std::isnan(y)) return bits_of(type, std::numeric_limits<double>::quiet_NaN());
    const bool a_is_less = x < y || (x == y && std::signbit(x) && !std::signbit(y));
    return (op == ReduceOp::max) == a_is_less ? b : a;
  }
  if (op == ReduceOp::prod) return bits_of(type, multiply(type, x, y));
  const Element sum = bits_of(type, add(type, x, y));
  const double total = value_of(type, sum);
  if (op == ReduceOp::avg && std::isinf(total) && std::isfinite(x) && std::isfinite(y))
    return bits_of(type, std::copysign(largest(type), total));
  return sum;
}

inline Element load(DataType type, ReduceOp op, Element a, const Scale& scale) {
  if (!scales_input(type, op)) return a;
  if (is_integer(type)) return masked(type, a * scale.factor_bits);
  return bits_of(
      type, multiply(type, value_of(type, a), type == DataType::float64 ? scale.factor64 : static_cast<double>(scale.factor32)));
}

inline Element finish(DataType type, ReduceOp op, Element a, const Scale& scale) {
  if (op != ReduceOp::avg || !is_integer(type)) return a;
  if (!is_signed(type)) return a / scale.divisor;
  return masked(type, static_cast<Element>(signed_value(type, a) / static_cast<std::int64_t>(scale.divisor)));
}

inline Element read(DataType type, const std::byte* from, std::size_t index) {
  Element e = 0;
  std::memcpy(&e, from + index * element_bytes(type), element_bytes(type));  // little-endian machines only, like the library
  return e;
}
inline void write(DataType type, std::byte* to, std::size_t index, Element e) {
  std::memcpy(to + index * element_bytes(type), &e, element_bytes(type));
}

}  // namespace shoal::device::reference
