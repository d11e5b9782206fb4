// SPDX-License-Identifier: Apache-2.0
// IEEE 754 half precision: 11 bits of mantissa, subnormals below 2^-14; what exceeds 65504 by half a step becomes infinity.
#include "compress/codecs/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compress/codecs/float16.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "compress/codecs/blocks-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shoal::compress::HWY_NAMESPACE {

struct Float16 {
  static constexpr Layout kLayout{.block = kRow, .bits = 16};

  static HWY_INLINE void encode(const float* in, std::size_t n, std::byte* to, Key /*key*/) {
    for (std::size_t i = 0; i < n; i += kLanes) store_halves(narrowed(load(in + i)), to + 2 * i);
  }

  template <class Sink>
  static HWY_INLINE void decode(const std::byte* from, std::size_t n, float* out) {
    for (std::size_t i = 0; i < n; i += kLanes) Sink::put(widened(load_halves(from + 2 * i)), out + i);
  }
};

const Kernels* float16_kernels() { return &kKernels<Float16>; }

}  // namespace shoal::compress::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::compress {
HWY_EXPORT(float16_kernels);
static const Kernels& best_float16() { return *HWY_DYNAMIC_DISPATCH(float16_kernels)(); }

extern const Codec float16_codec;
constinit const Codec float16_codec =
    dispatched<HWY_NAMESPACE::Float16::kLayout, best_float16>({.name = "fp16",
                                                               .about = "IEEE half precision, 2 bytes an element",
                                                               .idempotent = true,
                                                               .largest = 65504,
                                                               .bound = {.relative = 0x1p-11, .absolute = 0x1p-25}});
}  // namespace shoal::compress
#endif
