// SPDX-License-Identifier: Apache-2.0
// The kernels of float16 and bfloat16, computed in float32 and rounded once.
#include "device/convert.h"
#include "device/reduce_tables.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/reduce_float16.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "device/reduce_float-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shoal::device::HWY_NAMESPACE {

// What both formats share; Format gives decode, encode and the constants.
template <class Format>
struct Half {
  using DCompare = hn::ScalableTag<std::uint16_t>;
  using VCompare = hn::Vec<DCompare>;
  static constexpr bool kSaturates = false;

  template <class V>
  static HWY_INLINE V sum(V a, V b) {
    return Format::encode(add(Format::decode(a), Format::decode(b)));
  }
  template <class V>
  static HWY_INLINE V product(V a, V b) {
    return Format::encode(multiply(Format::decode(a), Format::decode(b)));
  }
  static HWY_INLINE VCompare maximum(VCompare a, VCompare b) {
    return Ordered<std::int16_t>::maximum(a, b, Format::kInfinity, Format::kNaN);
  }
  static HWY_INLINE VCompare minimum(VCompare a, VCompare b) {
    return Ordered<std::int16_t>::minimum(a, b, Format::kInfinity, Format::kNaN);
  }
};

// As many elements at a time as a vector of float32 has: the conversions are instructions that take half a vector from memory,
// and more than twice as fast (Zen 3) than when both halves of a whole one must first be brought there.
struct Float16 : Half<Float16> {
  using D = hn::Rebind<std::uint16_t, Float32>;
  using V = hn::Vec<D>;
  using Wide = Group<float, 1>;
  static constexpr float kLargest = 65504;
  static constexpr std::int16_t kInfinity = 0x7C00;
  static constexpr std::int16_t kNaN = 0x7E00;
#if HWY_TARGET == HWY_SCALAR
  static HWY_INLINE Wide decode(V v) {
    return {{ hn::Set(Float32(), from_float16(hn::GetLane(v))) }};
  }
  static HWY_INLINE V encode(Wide w) { return hn::Set(D(), to_float16(hn::GetLane(w.v[0]))); }
#else
  using DHalf = hn::Rebind<hwy::float16_t, Float32>;
  static HWY_INLINE Wide decode(V v) { return {{hn::PromoteTo(Float32(), hn::BitCast(DHalf(), v))}}; }
  static HWY_INLINE V encode(Wide w) { return hn::BitCast(D(), hn::DemoteTo(DHalf(), w.v[0])); }
#endif
};

// The upper half of a float32.
struct Bfloat16 : Half<Bfloat16> {
  using D = hn::ScalableTag<std::uint16_t>;
  using V = hn::Vec<D>;
  static constexpr float kLargest = 0x1.FEp127F;
  static constexpr std::int16_t kInfinity = 0x7F80;
  static constexpr std::int16_t kNaN = 0x7FC0;
#if HWY_TARGET == HWY_SCALAR
  using Wide = Group<float, 1>;
  static HWY_INLINE Wide decode(V v) {
    return {{ hn::Set(Float32(), from_bfloat16(hn::GetLane(v))) }};
  }
  static HWY_INLINE V encode(Wide w) { return hn::Set(D(), to_bfloat16(hn::GetLane(w.v[0]))); }
#else
  using Wide = Group<float, 2>;  // the even and the odd elements: no lane moves
  using Bits = hn::ScalableTag<std::uint32_t>;
  static HWY_INLINE Wide decode(V v) {
    const Float32 d;
    const auto pairs = hn::BitCast(Bits(), v);
    return {{hn::BitCast(d, hn::ShiftLeft<16>(pairs)), hn::BitCast(d, hn::And(pairs, hn::Set(Bits(), 0xFFFF0000)))}};
  }
  static HWY_INLINE V encode(Wide w) {
    const auto even = hn::ShiftRight<16>(rounded(w.v[0]));
    const auto odd = hn::And(rounded(w.v[1]), hn::Set(Bits(), 0xFFFF0000));
    return hn::BitCast(D(), hn::Or(even, odd));
  }
  // In the upper half of each lane. A NaN stays one: it came from an operand of this format or is the processor's default, and
  // either has zeros in the lower half, so that nothing carries.
  static HWY_INLINE hn::Vec<Bits> rounded(hn::Vec<Float32> v) {
    const Bits d;
    const auto bits = hn::BitCast(d, v);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1));
    return hn::Add(hn::Add(bits, hn::Set(d, 0x7FFF)), odd);
  }
#endif
};

const ReduceKernels* float16_table(DataType type) {
  return type == DataType::float16 ? floats_of<Float16>() : floats_of<Bfloat16>();
}

}  // namespace shoal::device::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::device {
HWY_EXPORT(float16_table);
const ReduceKernels* float16_kernels(DataType type) { return HWY_DYNAMIC_DISPATCH(float16_table)(type); }
}  // namespace shoal::device
#endif
