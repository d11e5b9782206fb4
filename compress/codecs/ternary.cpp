// SPDX-License-Identifier: Apache-2.0
// TernGrad's values (Wen et al. 2017): scale * sign(x) with probability |x| / scale, else 0, where the scale is the largest |x|
// of 2048 elements. The variance is scale |x| - x^2. What TernGrad clips, it clips before this.
#include "compress/codecs/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compress/codecs/ternary.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "compress/codecs/codes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shoal::compress::HWY_NAMESPACE {

// Two bits: 0, or 1 with the sign above it.
class TernaryCode {
 public:
  static constexpr std::size_t kBits = 2;
  static constexpr int kSpoilt = 0x55;

  HWY_INLINE TernaryCode(float scale, Key key) : scale_(scale), draws_(key) {}

  HWY_INLINE void encode(const float* in, std::size_t first, std::byte* to) const {
    const Floats d;
    std::byte codes[kRow];
    for (std::size_t i = 0; i < kRow; i += kLanes) {
      const auto x = load(in + i);
      const auto chance = hn::Mul(hn::Abs(hn::Div(x, hn::Set(d, scale_))), hn::Set(d, 0x1p24F));  // of 2^24
      const auto chosen = hn::VecFromMask(d, hn::Lt(draws_.at(first + i), chance));
      const auto bits = hn::Or(hn::ShiftLeft<1>(hn::ShiftRight<31>(hn::BitCast(Words(), x))), hn::Set(Words(), 1));
      store_bytes(hn::BitCast(Integers(), hn::And(bits, hn::BitCast(Words(), chosen))), codes + i);
    }
    store_packed<kBits>(codes, to);
  }

  template <class Sink>
  static HWY_INLINE void decode(const std::byte* from, float scale, float* out) {
    const Words d;
    const auto value = hn::Set(d, std::bit_cast<std::uint32_t>(scale));
    for_each_unpacked<kBits>(from, [&](VWords words, std::size_t i) HWY_ATTR {
      const auto present = hn::BroadcastSignBit(hn::BitCast(Integers(), hn::ShiftLeft<1>(words)));
      const auto sign = hn::And(words, hn::Set(d, kSign));
      const auto bits = hn::And(hn::Or(value, sign), hn::BitCast(d, present));
      Sink::put(hn::BitCast(Floats(), bits), out + i);
    });
  }

 private:
  float scale_;
  Draws draws_;
};

using Ternary = Scaled<LargestScale, TernaryCode, 2048>;

const Kernels* ternary_kernels() { return &kKernels<Ternary>; }

}  // namespace shoal::compress::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::compress {
HWY_EXPORT(ternary_kernels);
static const Kernels& best_ternary() { return *HWY_DYNAMIC_DISPATCH(ternary_kernels)(); }

extern const Codec ternary_codec;
constinit const Codec ternary_codec = dispatched<HWY_NAMESPACE::Ternary::kLayout, best_ternary>(
    {.name = "ternary",
     .about = "-1, 0 or 1 times the largest of 2048 elements, 2 bits each",
     .stochastic = true,
     .bound = {.of_block = 1, .absolute = 0x1p-126}});
}  // namespace shoal::compress
#endif
