// SPDX-License-Identifier: Apache-2.0
// The upper half of a float32, rounded: 8 bits of mantissa and float32's whole range.
#include "compress/codecs/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compress/codecs/bfloat16.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "compress/codecs/blocks-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shoal::compress::HWY_NAMESPACE {

struct Bfloat16 {
  static constexpr Layout kLayout{.block = kRow, .bits = 16};

  static HWY_INLINE void encode(const float* in, std::size_t n, std::byte* to, Key /*key*/) {
    for (std::size_t i = 0; i < n; i += kLanes) store_halves(hn::DemoteTo(Halves(), rounded(load(in + i))), to + 2 * i);
  }

  template <class Sink>
  static HWY_INLINE void decode(const std::byte* from, std::size_t n, float* out) {
    for (std::size_t i = 0; i < n; i += kLanes) {
      const auto bits = hn::ShiftLeft<16>(hn::PromoteTo(Words(), load_halves(from + 2 * i)));
      Sink::put(hn::BitCast(Floats(), bits), out + i);
    }
  }

 private:
  // To nearest, ties to even, as integers: a carry goes into the exponent, and from the largest one to infinity. A NaN is made
  // quiet instead, since its payload may be all in the half that is cut off.
  static HWY_INLINE VIntegers rounded(VFloats x) {
    const Words d;
    const auto bits = hn::BitCast(d, x);
    const auto upper = hn::ShiftRight<16>(bits);
    const auto up = hn::Add(hn::And(upper, hn::Set(d, 1)), hn::Set(d, 0x7FFF));
    const auto nearest = hn::ShiftRight<16>(hn::Add(bits, up));
    const auto nan = hn::RebindMask(d, hn::IsNaN(x));
    return hn::BitCast(Integers(), hn::IfThenElse(nan, hn::Or(upper, hn::Set(d, 0x40)), nearest));
  }
};

const Kernels* bfloat16_kernels() { return &kKernels<Bfloat16>; }

}  // namespace shoal::compress::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::compress {
HWY_EXPORT(bfloat16_kernels);
static const Kernels& best_bfloat16() { return *HWY_DYNAMIC_DISPATCH(bfloat16_kernels)(); }

extern const Codec bfloat16_codec;
constinit const Codec bfloat16_codec =
    dispatched<HWY_NAMESPACE::Bfloat16::kLayout, best_bfloat16>({.name = "bf16",
                                                                 .about = "the upper half of a float32, 2 bytes an element",
                                                                 .idempotent = true,
                                                                 .largest = 0x1.FEp127F,
                                                                 .bound = {.relative = 0x1p-8, .absolute = 0x1p-134}});
}  // namespace shoal::compress
#endif
