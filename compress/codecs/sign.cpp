// SPDX-License-Identifier: Apache-2.0
// Signs, and the mean of |x| over 1024 elements: the C(p) of EF-signSGD (Karimireddy et al. 2019). Zero counts as positive. Far
// from every element, it is made for compressors that keep the error for the next call.
#include "compress/codecs/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compress/codecs/sign.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "compress/codecs/codes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shoal::compress::HWY_NAMESPACE {

// One bit, set of negative elements.
class SignCode {
 public:
  static constexpr std::size_t kBits = 1;
  static constexpr int kSpoilt = 0;

  HWY_INLINE SignCode(float /*scale*/, Key /*key*/) {}

  HWY_INLINE void encode(const float* in, std::size_t /*first*/, std::byte* to) const {
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < kRow; i += kLanes) {
      std::uint8_t some[8] = {};  // StoreMaskBits may write that much
      hn::StoreMaskBits(Floats(), hn::Lt(load(in + i), hn::Zero(Floats())), some);
      bits |= static_cast<std::uint32_t>(some[0]) << i;
    }
    write(bits, to);
  }

  template <class Sink>
  static HWY_INLINE void decode(const std::byte* from, float scale, float* out) {
    const Words d;
    const auto value = hn::Set(d, std::bit_cast<std::uint32_t>(scale));
    for_each_unpacked<kBits>(from, [&](VWords words, std::size_t i) HWY_ATTR {
      Sink::put(hn::BitCast(Floats(), hn::Xor(value, hn::And(words, hn::Set(d, kSign)))), out + i);
    });
  }
};

using Sign = Scaled<MeanScale, SignCode, 1024>;

const Kernels* sign_kernels() { return &kKernels<Sign>; }

}  // namespace shoal::compress::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::compress {
HWY_EXPORT(sign_kernels);
static const Kernels& best_sign() { return *HWY_DYNAMIC_DISPATCH(sign_kernels)(); }

extern const Codec sign_codec;
constinit const Codec sign_codec = dispatched<HWY_NAMESPACE::Sign::kLayout, best_sign>(
    {.name = "sign", .about = "signs, 8 a byte, times the mean of 1024 magnitudes", .bound = {.of_block = 1}});
}  // namespace shoal::compress
#endif
