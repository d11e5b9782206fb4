// SPDX-License-Identifier: Apache-2.0
// The two 8-bit floats, a byte an element, in units of a scale that makes the largest element of a block the format's largest
// value: 448 of e4m3 (4 bits of mantissa), 57344 of e5m2 (3 bits). Small elements keep digits that an integer has not.
#include "compress/codecs/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compress/codecs/float8.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "compress/codecs/codes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shoal::compress::HWY_NAMESPACE {

// kMantissa bits are stored; kSmallest is the exponent of the smallest normal number.
template <int kMantissa, int kSmallest>
class Float8Code {
 public:
  static constexpr std::size_t kBits = 8;
  static constexpr int kSpoilt = 0;

  HWY_INLINE Float8Code(float scale, Key /*key*/) : inverse_(1 / scale) {}

  HWY_INLINE void encode(const float* in, std::size_t /*first*/, std::byte* to) const {
    for (std::size_t i = 0; i < kRow; i += kLanes) store_bytes(code(hn::Mul(load(in + i), hn::Set(Floats(), inverse_))), to + i);
  }

  // By way of a float16, which has the fields of e5m2 in its upper byte; those of e4m3 lie a bit lower and have another bias.
  template <class Sink>
  static HWY_INLINE void decode(const std::byte* from, float scale, float* out) {
    const hn::Rebind<std::int16_t, Floats> d;
    constexpr int kShift = 10 - kMantissa;
    constexpr float kUnit = kSmallest == -14 ? 1 : 0x1p8F;
    const auto times = hn::Set(Floats(), scale * kUnit);
    for (std::size_t i = 0; i < kRow; i += kLanes) {
      const auto codes = hn::PromoteTo(d, hn::LoadU(SignedBytes(), reinterpret_cast<const std::int8_t*>(from) + i));
      const auto halves =
          hn::And(hn::BitCast(Halves(), hn::ShiftLeft<kShift>(codes)), hn::Set(Halves(), 0x8000 | 0x7F << kShift));
      Sink::put(hn::Mul(widened(halves), times), out + i);
    }
  }

 private:
  // To nearest, ties to even: adding 2^23 steps of x's binade leaves the number of steps in the lowest bits. In the binade of the
  // subnormal and the smallest normal numbers that number is the code; each binade above adds 2^kMantissa.
  static HWY_INLINE VIntegers code(VFloats x) {
    const Integers d;
    const auto bits = hn::BitCast(d, x);
    const auto sign = hn::And(bits, hn::Set(d, static_cast<std::int32_t>(kSign)));
    const auto magnitude = hn::Xor(bits, sign);
    const auto smallest = hn::Set(d, (127 + kSmallest) << 23);
    const auto binade = hn::Max(hn::And(magnitude, hn::Set(d, static_cast<std::int32_t>(kInfinity))), smallest);
    const auto shift = hn::Add(binade, hn::Set(d, (23 - kMantissa) << 23));
    const auto sum = hn::Add(hn::BitCast(Floats(), magnitude), hn::BitCast(Floats(), shift));
    const auto steps = hn::Sub(hn::BitCast(d, sum), shift);
    const auto exponent = hn::ShiftRight<23 - kMantissa>(hn::Sub(binade, smallest));
    return hn::Or(hn::Add(exponent, steps), hn::ShiftRight<24>(sign));
  }

  float inverse_;
};

using Float8E4M3 = Scaled<NearestScale<448>, Float8Code<3, -6>, 128>;
using Float8E5M2 = Scaled<NearestScale<57344>, Float8Code<2, -14>, 128>;

const Kernels* float8_e4m3_kernels() { return &kKernels<Float8E4M3>; }
const Kernels* float8_e5m2_kernels() { return &kKernels<Float8E5M2>; }

}  // namespace shoal::compress::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::compress {
HWY_EXPORT(float8_e4m3_kernels);
HWY_EXPORT(float8_e5m2_kernels);
static const Kernels& best_float8_e4m3() { return *HWY_DYNAMIC_DISPATCH(float8_e4m3_kernels)(); }
static const Kernels& best_float8_e5m2() { return *HWY_DYNAMIC_DISPATCH(float8_e5m2_kernels)(); }

// Half a step; of subnormal ones 2^-10 and 2^-17 scales. A scale is up to 1.004 times max / largest.
extern const Codec float8_e4m3_codec;
constinit const Codec float8_e4m3_codec = dispatched<HWY_NAMESPACE::Float8E4M3::kLayout, best_float8_e4m3>(
    {.name = "fp8_e4m3",
     .about = "8-bit floats of 4 bits of mantissa, a scale for 128 elements",
     .idempotent = true,
     .bound = {.relative = 0x1p-4, .of_block = 0x1p-10 * 1.004 / 448, .absolute = 0x1p-136}});

extern const Codec float8_e5m2_codec;
constinit const Codec float8_e5m2_codec = dispatched<HWY_NAMESPACE::Float8E5M2::kLayout, best_float8_e5m2>(
    {.name = "fp8_e5m2",
     .about = "8-bit floats of 3 bits of mantissa, a scale for 128 elements",
     .idempotent = true,
     .bound = {.relative = 0x1p-3, .of_block = 0x1p-17 * 1.004 / 57344, .absolute = 0x1p-143}});
}  // namespace shoal::compress
#endif
