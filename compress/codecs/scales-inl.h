// SPDX-License-Identifier: Apache-2.0
// Scales of blocks. Each has kBytes on the wire, of(in, n) of a block of n elements with zeros after them up to whole rows, and
// load and store. of is NaN if an element is not finite; no scale is below 2^-126, so that its inverse is finite. Internal to
// this folder.
#if defined(SHOAL_COMPRESS_SCALES_INL) == defined(HWY_TARGET_TOGGLE)  // include guard, per instruction set
#ifdef SHOAL_COMPRESS_SCALES_INL
#undef SHOAL_COMPRESS_SCALES_INL
#else
#define SHOAL_COMPRESS_SCALES_INL
#endif

#include <cmath>
#include <limits>

#include "compress/codecs/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shoal::compress::HWY_NAMESPACE {

constexpr float kSmallestScale = 0x1p-126F;
constexpr float kSpoilt = std::numeric_limits<float>::quiet_NaN();

// Two bytes: a bfloat16. Times an integer, or a float of eight bits, it is exact in float32.
struct ShortScale {
  static constexpr std::size_t kBytes = 2;
  static HWY_INLINE void store(float scale, std::byte* to) {
    write(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(scale) >> 16), to);
  }
  static HWY_INLINE float load(const std::byte* from) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(read<std::uint16_t>(from)) << 16);
  }
};

struct LongScale {
  static constexpr std::size_t kBytes = 4;
  static HWY_INLINE void store(float scale, std::byte* to) { write(scale, to); }
  static HWY_INLINE float load(const std::byte* from) { return read<float>(from); }
};

// max|x| / kLargest, rounded to nearest or up.
template <std::uint32_t kLargest, bool kUp>
struct PartScale : ShortScale {
  static HWY_INLINE float of(const float* in, std::size_t n) {
    const std::uint32_t largest = largest_bits(in, whole_rows(n));
    if (largest >= kInfinity) return kSpoilt;
    const float exact = std::bit_cast<float>(largest) / static_cast<float>(kLargest);
    const auto bits = std::bit_cast<std::uint32_t>(exact > kSmallestScale ? exact : kSmallestScale);
    const std::uint32_t rounded = bits + (kUp ? 0xFFFF : 0x7FFF + ((bits >> 16) & 1));
    return std::bit_cast<float>(rounded & 0xFFFF0000);
  }
};

// At most 1/257 too small, by which kLargest is not yet rounded to a larger integer or float of eight bits, nor too large to one
// that is smaller: the largest element has the code kLargest, so that what is decoded has the same scale.
template <std::uint32_t kLargest>
using NearestScale = PartScale<kLargest, false>;

// No |x| exceeds kLargest scales, so that rounding at random never needs a larger code. (The division never rounds down to a
// bfloat16: a step of the dividend is more than half a step of the quotient, where the divisor is one less than a power of two.)
template <std::uint32_t kLargest>
requires(std::has_single_bit(kLargest + 1)) using UpperScale = PartScale<kLargest, true>;

// max|x|.
struct LargestScale : LongScale {
  static HWY_INLINE float of(const float* in, std::size_t n) {
    const std::uint32_t largest = largest_bits(in, whole_rows(n));
    if (largest >= kInfinity) return kSpoilt;
    const auto exact = std::bit_cast<float>(largest);
    return exact > kSmallestScale ? exact : kSmallestScale;
  }
};

// The Euclidean norm / kLevels, rounded up: no |x| exceeds kLevels scales.
template <std::uint32_t kLevels>
struct NormScale : LongScale {
  static HWY_INLINE float of(const float* in, std::size_t n) {
    const double norm = std::sqrt(sum_of(in, whole_rows(n), [](auto x) HWY_ATTR { return hn::Mul(x, x); }));
    const double exact = norm / kLevels;
    if (!(exact <= static_cast<double>(std::numeric_limits<float>::max()))) return kSpoilt;
    const auto nearest = static_cast<float>(exact);
    const bool enough = static_cast<double>(nearest) * kLevels >= norm;
    const float up = enough ? nearest : std::bit_cast<float>(std::bit_cast<std::uint32_t>(nearest) + 1);
    return up > kSmallestScale ? up : kSmallestScale;
  }
};

// The mean of |x|; may be as small as it is, since nothing is divided by it.
struct MeanScale : LongScale {
  static HWY_INLINE float of(const float* in, std::size_t n) {
    const double sum = sum_of(in, whole_rows(n), [](auto x) HWY_ATTR { return hn::Abs(x); });
    const auto mean = static_cast<float>(sum / static_cast<double>(n));
    return mean <= std::numeric_limits<float>::max() ? mean : kSpoilt;
  }
};

}  // namespace shoal::compress::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
