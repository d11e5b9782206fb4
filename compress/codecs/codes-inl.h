// SPDX-License-Identifier: Apache-2.0
// Codes of fewer bits than a byte, packed and unpacked; and codes that are integers, times a scale. Internal to this folder.
#if defined(SHOAL_COMPRESS_CODES_INL) == defined(HWY_TARGET_TOGGLE)  // include guard, per instruction set
#ifdef SHOAL_COMPRESS_CODES_INL
#undef SHOAL_COMPRESS_CODES_INL
#else
#define SHOAL_COMPRESS_CODES_INL
#endif

#include "compress/codecs/blocks-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shoal::compress::HWY_NAMESPACE {

using SignedBytes = hn::Rebind<std::int8_t, Integers>;

HWY_INLINE void store_bytes(VIntegers codes, std::byte* to) {
  hn::StoreU(hn::DemoteTo(SignedBytes(), codes), SignedBytes(), reinterpret_cast<std::int8_t*>(to));
}

// The lowest kBits of eight bytes side by side, the first byte's lowest.
template <std::size_t kBits>
HWY_INLINE std::uint64_t packed(std::uint64_t bytes) {
  constexpr std::uint64_t kOnes = ~std::uint64_t{0};
  constexpr auto low = [](std::size_t bits) { return (std::uint64_t{1} << bits) - 1; };
  bytes &= kOnes / 0xFF * low(kBits);
  bytes = (bytes | (bytes >> (8 - kBits))) & (kOnes / 0xFFFF * low(2 * kBits));
  bytes = (bytes | (bytes >> (16 - 2 * kBits))) & (kOnes / 0xFFFFFFFF * low(4 * kBits));
  return bytes | (bytes >> (32 - 4 * kBits));
}

// From a row of codes, a byte each.
template <std::size_t kBits>
HWY_INLINE void store_packed(const std::byte* codes, std::byte* to) {
  for (std::size_t i = 0; i < kRow / 8; ++i) {
    const std::uint64_t bits = packed<kBits>(read<std::uint64_t>(codes + 8 * i));
    std::memcpy(to + i * kBits, &bits, kBits);
  }
}

// Calls take(words, i) for the elements from i on of a row, for all vectors of it, with an element's code in the highest bits of
// its word; below it is whatever comes before it on the wire.
template <std::size_t kBits, class Take>
HWY_INLINE void for_each_unpacked(const std::byte* from, const Take& take) {
  constexpr std::size_t kCodes = 32 / kBits;  // a word
  const Words d;
  for (std::size_t i = 0; i < kRow; i += kCodes) {
    const auto word = hn::Set(d, read<std::uint32_t>(from + i * kBits / 8));
    for (std::size_t k = 0; k < kCodes; k += kLanes) {
      const auto first_bit = hn::ShiftLeft<std::bit_width(kBits) - 1>(counted_from(k));
      take(hn::Shl(word, hn::Sub(hn::Set(d, 32 - kBits), first_bit)), i + k);
    }
  }
}

// x / scale to the nearest integer, ties to even: what adding 1.5 * 2^23 leaves in the lowest bits.
class Nearest {
 public:
  HWY_INLINE Nearest(float scale, Key /*key*/) : inverse_(1 / scale) {}
  HWY_INLINE VIntegers operator()(VFloats x, std::size_t /*i*/) const {
    const Floats d;
    const auto shift = hn::Set(d, 0x1.8p23F);
    const auto sum = hn::Add(hn::Mul(x, hn::Set(d, inverse_)), shift);
    return hn::Sub(hn::BitCast(Integers(), sum), hn::BitCast(Integers(), shift));
  }

 private:
  float inverse_;
};

// x / scale to the integer below or above, above with the probability that makes the expected value x / scale. Divides, so that
// multiples of the scale are what they are.
class AtRandom {
 public:
  HWY_INLINE AtRandom(float scale, Key key) : scale_(scale), draws_(key) {}
  HWY_INLINE VIntegers operator()(VFloats x, std::size_t i) const {
    const Floats d;
    const auto exact = hn::Div(x, hn::Set(d, scale_));
    const auto below = hn::Floor(exact);
    const auto chance = hn::Mul(hn::Sub(exact, below), hn::Set(d, 0x1p24F));  // of 2^24
    const auto up = hn::VecFromMask(Integers(), hn::RebindMask(Integers(), hn::Lt(draws_.at(i), chance)));
    return hn::Sub(hn::ConvertTo(Integers(), below), up);
  }

 private:
  float scale_;
  Draws draws_;
};

// Integers of kBits, two's complement, as Rounding makes them.
template <std::size_t bits, class Rounding>
class IntegerCode {
 public:
  static constexpr std::size_t kBits = bits;
  static constexpr int kSpoilt = 0;

  HWY_INLINE IntegerCode(float scale, Key key) : rounding_(scale, key) {}

  HWY_INLINE void encode(const float* in, std::size_t first, std::byte* to) const {
    std::byte codes[kRow];
    for (std::size_t i = 0; i < kRow; i += kLanes) store_bytes(rounding_(load(in + i), first + i), (kBits == 8 ? to : codes) + i);
    if constexpr (kBits < 8) store_packed<kBits>(codes, to);
  }

  template <class Sink>
  static HWY_INLINE void decode(const std::byte* from, float scale, float* out) {
    const auto times = hn::Set(Floats(), scale);
    if constexpr (kBits == 8) {
      for (std::size_t i = 0; i < kRow; i += kLanes) {
        const auto codes = hn::LoadU(SignedBytes(), reinterpret_cast<const std::int8_t*>(from) + i);
        Sink::put(hn::Mul(hn::ConvertTo(Floats(), hn::PromoteTo(Integers(), codes)), times), out + i);
      }
    } else {
      for_each_unpacked<kBits>(from, [&](VWords words, std::size_t i) HWY_ATTR {
        const auto codes = hn::ShiftRight<32 - kBits>(hn::BitCast(Integers(), words));
        Sink::put(hn::Mul(hn::ConvertTo(Floats(), codes), times), out + i);
      });
    }
  }

 private:
  Rounding rounding_;
};

}  // namespace shoal::compress::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
