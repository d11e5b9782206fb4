// SPDX-License-Identifier: Apache-2.0
// The kernels of the two 8-bit formats, computed in float32, rounded once, saturating.
//
// Elements become float16 by moving bits, those in even bytes and those in odd bytes apart, and then float32. e5m2 is the upper
// byte of a float16; e4m3 has the same fields one bit lower and another bias, so that its float16 is 256 times too small,
// subnormals included.
//
// Results go back the same way: rounded to float16, then to 8 bits, they get the bits that one rounding gives. A product of two
// elements has no more digits than a float16 or is too small to matter, and a sum that has more is so near to its larger operand
// that both roundings end there. (The tests compare all pairs.) A scaled element has more digits, but is one of 256 values: those
// come from a table.
//
// Where an instruction looks up bytes in large tables, sums stay in 8 bits (reduce_float8_lookup-inl.h).
#define HWY_WANT_AVX3_DL  // Ice Lake, Zen 4 and their successors
#include "device/convert.h"
#include "device/reduce_tables.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/reduce_float8.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "device/reduce_float-inl.h"
#include "device/reduce_float8_lookup-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shoal::device::HWY_NAMESPACE {

using SignedBytes = hn::ScalableTag<std::int8_t>;

template <class Format>
struct Byte {
  using D = Bytes;
  using DCompare = Bytes;
  static constexpr bool kSaturates = true;

  static HWY_INLINE VBytes maximum(VBytes a, VBytes b) {
    return Ordered<std::int8_t>::maximum(a, b, Format::kInfinity, Format::kNaN);
  }
  static HWY_INLINE VBytes minimum(VBytes a, VBytes b) {
    return Ordered<std::int8_t>::minimum(a, b, Format::kInfinity, Format::kNaN);
  }
};

struct E4M3 : Byte<E4M3> {
  static constexpr int kMantissa = 3;
  static constexpr std::int8_t kLargestBits = 0x7E;
  static constexpr std::int8_t kInfinity = 0x7E;  // none: the largest value
  static constexpr std::int8_t kNaN = 0x7F;
  static float value(std::uint8_t bits) { return from_float8_e4m3(bits); }
  static std::uint8_t bits(float value) { return to_float8_e4m3(value); }
};

struct E5M2 : Byte<E5M2> {
  static constexpr int kMantissa = 2;
  static constexpr std::int8_t kLargestBits = 0x7B;
  static constexpr std::int8_t kInfinity = 0x7C;
  static constexpr std::int8_t kNaN = 0x7F;
  static float value(std::uint8_t bits) { return from_float8_e5m2(bits); }
  static std::uint8_t bits(float value) { return to_float8_e5m2(value); }
};

#if HWY_TARGET == HWY_SCALAR

template <class Format>
struct Float8 : Format {
  static HWY_INLINE VBytes sum(VBytes a, VBytes b) { return encode(decode(a) + decode(b)); }
  static HWY_INLINE VBytes product(VBytes a, VBytes b) { return encode(decode(a) * decode(b)); }
  static HWY_INLINE float decode(VBytes v) { return Format::value(hn::GetLane(v)); }
  static HWY_INLINE VBytes encode(float value) { return hn::Set(Bytes(), Format::bits(value)); }
};
using Float8E4M3 = Float8<E4M3>;
using Float8E5M2 = Float8<E5M2>;

#else

using Pairs = hn::ScalableTag<std::uint16_t>;
using HalfPairs = hn::Rebind<std::uint16_t, Float32>;
using Float16s = hn::Rebind<hwy::float16_t, Float32>;
using VPairs = hn::Vec<Pairs>;
using Pair = Group<float, 2>;  // the lower and the upper half

HWY_INLINE hn::Vec<Float32> widened_half(const std::uint16_t* from) {
  return hn::PromoteTo(Float32(), hn::BitCast(Float16s(), hn::Load(HalfPairs(), from)));
}

// From float16 bits, by way of memory: the conversion takes half a vector from there twice as fast (Zen 3) as from a register,
// and the upper half need not be brought down first. The empty assembly keeps the compiler from seeing through it.
HWY_INLINE Pair widened(VPairs v) {
  constexpr std::size_t kLanes = hn::MaxLanes(Pairs());
  alignas(2 * kLanes) std::uint16_t lanes[kLanes];
  hn::Store(v, Pairs(), lanes);
  asm("" : "+m"(lanes));
  return {{widened_half(lanes), widened_half(lanes + kLanes / 2)}};
}

// To float16 bits.
HWY_INLINE VPairs narrowed(Pair p) {
  return hn::Combine(Pairs(), hn::BitCast(HalfPairs(), hn::DemoteTo(Float16s(), p.v[1])),
                     hn::BitCast(HalfPairs(), hn::DemoteTo(Float16s(), p.v[0])));
}

// Adds what makes cutting off the lowest kDropped bits round to nearest, ties to even; a carry goes into the exponent.
template <int kDropped>
HWY_INLINE VPairs before_cut(VPairs v) {
  const Pairs d;
  const auto odd = hn::And(hn::ShiftRight<kDropped>(v), hn::Set(d, 1));
  return hn::Add(hn::Add(v, hn::Set(d, (1U << (kDropped - 1)) - 1)), odd);
}

HWY_INLINE VBytes magnitude(VBytes v) { return hn::And(v, hn::Set(Bytes(), 0x7F)); }
HWY_INLINE VPairs upper_byte(VPairs v) { return hn::And(v, hn::Set(Pairs(), 0xFF00)); }

// What a sum of numbers is where an operand is none: NaN, or the infinity that one of them is. Rare: one branch for all lanes.
template <class Format>
HWY_INLINE VBytes with_special(VBytes sum, VBytes a, VBytes b) {
  const Bytes d;
  const auto larger = hn::Max(magnitude(a), magnitude(b));
  const auto special = hn::Gt(larger, hn::Set(d, Format::kLargestBits));
  if (HWY_LIKELY(hn::AllFalse(d, special))) return sum;
  const auto infinity = hn::Set(d, Format::kInfinity);
  const auto is_nan = hn::Or(hn::Gt(larger, infinity), hn::Eq(hn::Xor(a, b), hn::Set(d, 0x80)));
  const auto value = hn::IfThenElse(is_nan, hn::Set(d, Format::kNaN), infinity);
  return hn::IfThenElse(special, hn::Or(value, hn::And(sum, hn::Set(d, 0x80))), sum);
}

// Format says how an element's bits become a float16's and come back.
template <class Format>
struct Float8 : Format {
  static HWY_INLINE VBytes sum(VBytes a8, VBytes b8) {
    if constexpr (kQuickLookup) {
      return with_special<Format>(sum_by_lookup<Format::kMantissa, Format::kLargestBits>(a8, b8), a8, b8);
    } else {
      const auto a = hn::BitCast(Pairs(), a8);
      const auto b = hn::BitCast(Pairs(), b8);
      const auto even = narrowed(add(widened(Format::even(a)), widened(Format::even(b))));
      const auto odd = narrowed(add(widened(Format::odd(a)), widened(Format::odd(b))));
      return Format::rounded(even, odd, hn::Max(magnitude(a8), magnitude(b8)));
    }
  }
  static HWY_INLINE VBytes product(VBytes a8, VBytes b8) {
    const auto a = hn::BitCast(Pairs(), a8);
    const auto b = hn::BitCast(Pairs(), b8);
    const auto even = narrowed(multiply(Format::unscaled(widened(Format::even(a))), widened(Format::even(b))));
    const auto odd = narrowed(multiply(Format::unscaled(widened(Format::odd(a))), widened(Format::odd(b))));
    return Format::rounded(even, odd, hn::Max(magnitude(a8), magnitude(b8)));
  }
};

struct E4M3AsFloat16 : E4M3 {
  static HWY_INLINE VPairs even(VPairs v) { return odd(hn::ShiftLeft<8>(v)); }
  static HWY_INLINE VPairs odd(VPairs v) {
    const hn::RebindToSigned<Pairs> d;
    return hn::And(hn::BitCast(Pairs(), hn::ShiftRight<1>(hn::BitCast(d, v))), hn::Set(Pairs(), 0xBF80));
  }
  // Products must have the scale of sums.
  static HWY_INLINE Pair unscaled(Pair p) { return multiply(p, 256.0F); }

  // `larger` is the larger magnitude of the operands. Magnitudes up to a float16's largest fit in 8 bits here and are cut at 448;
  // a NaN was computed with as if it were 480.
  static HWY_INLINE VBytes rounded(VPairs even, VPairs odd, VBytes larger) {
    const auto sign = hn::Set(Pairs(), 0x8000);
    const auto signs = hn::Or(hn::ShiftRight<8>(hn::And(even, sign)), hn::And(odd, sign));
    const auto low = hn::ShiftRight<7>(before_cut<7>(hn::AndNot(sign, even)));
    const auto high = upper_byte(hn::ShiftLeft<1>(before_cut<7>(hn::AndNot(sign, odd))));
    const auto cut = hn::Min(hn::BitCast(Bytes(), hn::Or(low, high)), hn::Set(Bytes(), 0x7E));
    const auto nan = hn::Set(Bytes(), 0x7F);
    const auto if_nan = hn::And(hn::VecFromMask(Bytes(), hn::Eq(larger, nan)), nan);
    return hn::Or(hn::Or(cut, hn::BitCast(Bytes(), signs)), if_nan);
  }
};

struct E5M2AsFloat16 : E5M2 {
  static HWY_INLINE VPairs even(VPairs v) { return hn::ShiftLeft<8>(v); }
  static HWY_INLINE VPairs odd(VPairs v) { return upper_byte(v); }
  static HWY_INLINE Pair unscaled(Pair p) { return p; }

  // An infinity that no operand was is an overflow: the largest value, one less.
  static HWY_INLINE VBytes rounded(VPairs even, VPairs odd, VBytes larger) {
    const auto result = hn::BitCast(Bytes(), hn::Or(hn::ShiftRight<8>(before_cut<8>(even)), upper_byte(before_cut<8>(odd))));
    const SignedBytes d;
    const auto infinity = hn::Set(d, kInfinity);
    const auto is_infinite = hn::Eq(hn::BitCast(d, magnitude(result)), infinity);
    const auto was_finite = hn::Gt(infinity, hn::BitCast(d, larger));
    return hn::Add(result, hn::BitCast(Bytes(), hn::VecFromMask(d, hn::And(is_infinite, was_finite))));
  }
};

using Float8E4M3 = Float8<E4M3AsFloat16>;
using Float8E5M2 = Float8<E5M2AsFloat16>;
#endif

// Times the factor, by a table of the results for all magnitudes.
template <class F>
struct Scaled {
  explicit Scaled(const Scale& scale) {
    for (std::size_t i = 0; i < table.at.size(); ++i)
      table.at[i] = F::bits(F::value(static_cast<std::uint8_t>(i)) * scale.factor32);
  }
  HWY_INLINE VBytes operator()(VBytes v) const {
    const Bytes d;
    const auto sign = hn::And(v, hn::Set(d, 0x80));
#if HWY_TARGET == HWY_SCALAR
    return hn::Xor(hn::Set(d, table.at[hn::GetLane(v) & 0x7F]), sign);
#else
    return hn::Xor(lookup(table, hn::Xor(v, sign)), sign);
#endif
  }
  Table128 table;
};

const ReduceKernels* float8_table(DataType type) {
  return type == DataType::float8_e4m3 ? floats_of<Float8E4M3, Scaled<Float8E4M3>>()
                                       : floats_of<Float8E5M2, Scaled<Float8E5M2>>();
}

}  // namespace shoal::device::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::device {
HWY_EXPORT(float8_table);
const ReduceKernels* float8_kernels(DataType type) { return HWY_DYNAMIC_DISPATCH(float8_table)(type); }
}  // namespace shoal::device
#endif
