// SPDX-License-Identifier: Apache-2.0
// Sums as integers as wide as the widest type needs, in units of a type's smallest subnormal; the element nearest to one is found
// by looking for it: bisection over all bit patterns, by exact comparisons. Value types and functions, any thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "core/types.h"
#include "device/reference.h"

namespace shoal::device::reference {

struct Shape {
  int bits, mantissa;
  Element largest, infinity, nan, overflow;
};

inline Shape shape_of(DataType type) {
  switch (type) {
    case DataType::float16: return {16, 10, 0x7BFF, 0x7C00, 0x7E00, 0x7C00};
    case DataType::bfloat16: return {16, 7, 0x7F7F, 0x7F80, 0x7FC0, 0x7F80};
    case DataType::float32: return {32, 23, 0x7F7FFFFF, 0x7F800000, 0x7FC00000, 0x7F800000};
    case DataType::float8_e4m3: return {8, 3, 0x7E, 0, 0x7F, 0x7E};
    case DataType::float8_e5m2: return {8, 2, 0x7B, 0x7C, 0x7E, 0x7B};
    case DataType::float64:
    case DataType::int8:
    case DataType::uint8:
    case DataType::int32:
    case DataType::uint32:
    case DataType::int64:
    case DataType::uint64: break;
  }
  return {64, 52, 0x7FEFFFFFFFFFFFFF, 0x7FF0000000000000, 0x7FF8000000000000, 0x7FF0000000000000};
}

inline Element sign_bit(DataType type) { return Element{1} << (shape_of(type).bits - 1); }

// A non-negative integer of at most 2,400 bits, and its sign.
class Wide {
 public:
  Wide() = default;
  Wide(std::uint64_t value, int shift, bool negative) : negative_(negative) {
    for (int bit = 0; bit < 64; ++bit)
      if ((value >> bit) & 1) limbs_[static_cast<std::size_t>(bit + shift) / 32] |= 1U << ((bit + shift) % 32);
  }
  bool negative() const { return negative_; }
  bool is_zero() const { return limbs_ == Wide().limbs_; }

  Wide& operator+=(const Wide& other) {
    if (negative_ == other.negative_) {
      std::uint64_t carry = 0;
      for (std::size_t i = 0; i < limbs_.size(); ++i, carry >>= 32) {
        carry += std::uint64_t{limbs_[i]} + other.limbs_[i];
        limbs_[i] = static_cast<std::uint32_t>(carry);
      }
      return *this;
    }
    const bool smaller = compare(*this, other) < 0;
    const Wide a = smaller ? other : *this;
    const Wide b = smaller ? *this : other;
    std::int64_t borrow = 0;
    for (std::size_t i = 0; i < limbs_.size(); ++i) {
      borrow += std::int64_t{a.limbs_[i]} - b.limbs_[i];
      limbs_[i] = static_cast<std::uint32_t>(borrow);
      borrow >>= 32;
    }
    negative_ = a.negative_;
    return *this;
  }

  Wide times(std::uint32_t factor) const {
    Wide product;
    std::uint64_t carry = 0;
    for (std::size_t i = 0; i < limbs_.size(); ++i, carry >>= 32) {
      carry += std::uint64_t{limbs_[i]} * factor;
      product.limbs_[i] = static_cast<std::uint32_t>(carry);
    }
    product.negative_ = negative_;
    return product;
  }

  // Of the absolute values: negative, zero or positive.
  static int compare(const Wide& a, const Wide& b) {
    for (std::size_t i = a.limbs_.size(); i-- > 0;)
      if (a.limbs_[i] != b.limbs_[i]) return a.limbs_[i] < b.limbs_[i] ? -1 : 1;
    return 0;
  }

 private:
  std::array<std::uint32_t, 75> limbs_{};
  bool negative_ = false;
};

// In units of the smallest subnormal. The pattern above the largest finite value counts as if exponents went on.
inline Wide wide(DataType type, Element e) {
  const Shape shape = shape_of(type);
  const Element magnitude = e & ~sign_bit(type);
  const Element fraction = magnitude & ((Element{1} << shape.mantissa) - 1);
  const auto exponent = static_cast<int>(magnitude >> shape.mantissa);
  const bool negative = (e & sign_bit(type)) != 0;
  return exponent == 0 ? Wide(fraction, 0, negative) : Wide(fraction | (Element{1} << shape.mantissa), exponent - 1, negative);
}

inline Element nearest_quotient(DataType type, const Wide& sum, std::uint32_t divisor) {
  const Shape shape = shape_of(type);
  if (sum.is_zero()) return 0;
  const Element sign = sum.negative() ? sign_bit(type) : 0;
  Element below = 0;  // the largest pattern not above the quotient
  Element above = shape.largest + 1;
  if (Wide::compare(wide(type, above).times(divisor), sum) <= 0) return sign | shape.overflow;
  while (above - below > 1) {
    const Element middle = below + (above - below) / 2;
    (Wide::compare(wide(type, middle).times(divisor), sum) <= 0 ? below : above) = middle;
  }
  Wide ends(wide(type, below));
  ends += wide(type, above);
  const int side = Wide::compare(sum.times(2), ends.times(divisor));
  const Element nearest = side < 0 || (side == 0 && below % 2 == 0) ? below : above;
  return sign | std::min(nearest, shape.overflow);
}

}  // namespace shoal::device::reference
