// SPDX-License-Identifier: Apache-2.0
// Sums of 8-bit floats without leaving 8 bits, by tables: quick where an instruction looks up bytes among 128 (VBMI). Internal to
// this folder; included once for each instruction set.
//
// Magnitudes order as their codes do. The smaller operand's significand is shifted to the larger one's exponent and added or
// subtracted, with three bits below the unit of the larger one. The lowest of them is sticky: odd means anywhere between the even
// neighbours, which is all that rounding to nearest asks for. Two steps are tables: the shift, and the code of a significand,
// rounded. The code of a significand is a difference to that of the larger operand's exponent, as if exponents had no least one;
// a third table takes what falls below the normal numbers, which is exact there, to its subnormal code.
//
// That takes some 35 instructions for 64 sums, where the way through float32 takes twice as many and conversions are slow ones.
#if defined(SHOAL_DEVICE_REDUCE_FLOAT8_LOOKUP_INL) == defined(HWY_TARGET_TOGGLE)  // include guard, per instruction set
#ifdef SHOAL_DEVICE_REDUCE_FLOAT8_LOOKUP_INL
#undef SHOAL_DEVICE_REDUCE_FLOAT8_LOOKUP_INL
#else
#define SHOAL_DEVICE_REDUCE_FLOAT8_LOOKUP_INL
#endif

#include <array>
#include <cstddef>
#include <cstdint>

#include "device/reduce_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shoal::device::HWY_NAMESPACE {

using Bytes = hn::ScalableTag<std::uint8_t>;
using VBytes = hn::Vec<Bytes>;

struct alignas(16) Table128 {
  std::array<std::uint8_t, 128> at{};
};

#if HWY_TARGET != HWY_SCALAR

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL
inline constexpr bool kQuickLookup = true;
// The highest bit of an index is ignored.
HWY_INLINE VBytes lookup(const Table128& table, VBytes index) {
  const auto low = hn::LoadU(Bytes(), table.at.data());
  const auto high = hn::LoadU(Bytes(), table.at.data() + 64);
  return VBytes{_mm512_permutex2var_epi8(low.raw, index.raw, high.raw)};
}
#else
inline constexpr bool kQuickLookup = false;
// Sixteen entries at a time. An index of other sixteen gets its highest bit set, which gives 0.
HWY_INLINE VBytes lookup(const Table128& table, VBytes index) {
  const Bytes d;
  auto result = hn::Zero(d);
  for (std::size_t i = 0; i < table.at.size(); i += 16) {
    const auto local = hn::SaturatedAdd(hn::Xor(index, hn::Set(d, static_cast<std::uint8_t>(i))), hn::Set(d, 0x70));
    result = hn::Or(result, hn::TableLookupBytesOr0(hn::LoadDup128(d, table.at.data() + i), local));
  }
  return result;
}
#endif

// The tables for a format of kMantissa bits of mantissa. Codes are magnitudes, of seven bits.
template <int kMantissa>
struct SumTables {
  static constexpr int kHidden = 1 << kMantissa;                 // the significand's highest bit
  static constexpr int kBelow = 3;                               // bits below the unit of the larger operand
  static constexpr int kOne = kHidden << kBelow;                 // a significand of 1.0
  static constexpr int kOffset = (kMantissa - 1) * kHidden + 1;  // added to codes, so that all but that of 0 are above 0
  static constexpr int kNormal = kHidden + kOffset;              // the least normal code, with that

  // A code is base + significand, for subnormals too.
  static constexpr int base(int code) { return code < kHidden ? 0 : code / kHidden * kHidden - kHidden; }

  static constexpr int divided_to_even(int n, int divisor) {
    const int twice = 2 * (n % divisor);
    const int down = n / divisor;
    return down + (twice > divisor || (twice == divisor && down % 2 == 1) ? 1 : 0);
  }

  // Of what a significand with kBelow bits is, by the larger operand's exponent: its code less base.
  static constexpr int code_of(int significand) {
    int exponent = 0;
    if (significand >= 2 * kOne) return kHidden + divided_to_even(significand, 2 << kBelow);
    for (; significand < kOne; significand *= 2) --exponent;
    return exponent * kHidden + divided_to_even(significand, 1 << kBelow);
  }

  // By code: significand less twice the base. With twice the larger operand's base it is an index of `shifted`: the
  // significand, and above it by how much to shift it.
  static constexpr Table128 smaller = [] {
    Table128 table;
    for (int code = 0; code < 128; ++code)
      table.at[static_cast<std::size_t>(code)] = static_cast<std::uint8_t>(code - 3 * base(code));
    return table;
  }();
  static constexpr Table128 shifted = [] {
    Table128 table;
    for (int i = 0; i < 128; ++i) {
      const int wide = i % (2 * kHidden) << kBelow;
      const int shift = i / (2 * kHidden);
      const int sticky = wide % (1 << shift) != 0 ? 1 : 0;
      table.at[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>((wide >> shift) | sticky);
    }
    return table;
  }();
  static constexpr Table128 codes(int from) {
    Table128 table;
    for (int i = 0; i < 128; ++i)
      table.at[static_cast<std::size_t>(i)] = from + i == 0 ? 0 : static_cast<std::uint8_t>(code_of(from + i) + kOffset);
    return table;
  }
  static constexpr Table128 small_codes = codes(0);
  static constexpr Table128 large_codes = codes(128);
  // By code with offset: the code of the same value where there is a least exponent.
  static constexpr Table128 subnormal = [] {
    Table128 table;
    for (int code = 1; code < kHidden; ++code)
      table.at[static_cast<std::size_t>(code_of(code << kBelow) + kOffset)] = static_cast<std::uint8_t>(code);
    return table;
  }();
};

// a + b, rounded once, saturating at the code kLargest. Operands above it, which are no finite numbers, are left to the caller.
template <int kMantissa, int kLargest>
HWY_INLINE VBytes sum_by_lookup(VBytes a, VBytes b) {
  using V = VBytes;
  using T = SumTables<kMantissa>;
  const Bytes d;
  const auto set = [d](int value) { return hn::Set(d, static_cast<std::uint8_t>(value)); };
  const auto sign = set(0x80);
  const V a_magnitude = hn::AndNot(sign, a);
  const V b_magnitude = hn::AndNot(sign, b);
  const V larger = hn::Max(a_magnitude, b_magnitude);
  const V smaller = hn::Min(a_magnitude, b_magnitude);
  const auto differ = hn::TestBit(hn::Xor(a, b), sign);
  const V base = hn::SaturatedSub(hn::And(larger, set(0x80 - T::kHidden)), set(T::kHidden));

  const V index = hn::Add(hn::Add(base, base), lookup(T::smaller, smaller));
  const V addend = lookup(T::shifted, hn::Min(index, set(0x7F)));  // beyond the table it is too small to matter
  const hn::Repartition<std::uint16_t, decltype(d)> pairs;  // nothing crosses from byte to byte: significands are that short
  const V wide = hn::BitCast(d, hn::ShiftLeft<T::kBelow>(hn::BitCast(pairs, hn::Sub(larger, base))));
  const V total = hn::IfThenElse(differ, hn::Sub(wide, addend), hn::Add(wide, addend));

  V code = lookup(T::small_codes, total);
  if constexpr (4 * T::kOne > 128) code = hn::IfThenElse(hn::TestBit(total, sign), lookup(T::large_codes, total), code);
  code = hn::Min(hn::Add(code, base), set(kLargest + T::kOffset));
  const V magnitude = hn::IfThenElse(hn::Lt(code, set(T::kNormal)), lookup(T::subnormal, code), hn::Sub(code, set(T::kOffset)));
  const V with_sign = hn::Or(magnitude, hn::And(hn::IfThenElse(hn::Lt(a_magnitude, b_magnitude), b, a), sign));
  return hn::IfThenZeroElse(hn::And(differ, hn::Eq(larger, smaller)), with_sign);
}

#endif

}  // namespace shoal::device::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
