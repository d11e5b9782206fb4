// SPDX-License-Identifier: Apache-2.0
// Random numbers by counter: what is drawn for an element is a function of the seed and its index, so that they may be drawn in
// any order, in vectors. Internal to this folder.
#if defined(SHOAL_COMPRESS_DRAWS_INL) == defined(HWY_TARGET_TOGGLE)  // include guard, per instruction set
#ifdef SHOAL_COMPRESS_DRAWS_INL
#undef SHOAL_COMPRESS_DRAWS_INL
#else
#define SHOAL_COMPRESS_DRAWS_INL
#endif

#include "compress/codecs/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shoal::compress::HWY_NAMESPACE {

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): every bit depends on every bit.
HWY_INLINE std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

// What a block's draws are made of. The seed is mixed before the block's number is added: seeds that differ by the same constants
// as blocks do must not give one block the draws of another.
struct Key {
  std::uint64_t mixed_seed;
  std::uint64_t block;
};

class Draws {
 public:
  explicit HWY_INLINE Draws(Key key) {
    const std::uint64_t bits = mixed(key.mixed_seed + (key.block + 1) * 0x9E3779B97F4A7C15);
    first_ = static_cast<std::uint32_t>(bits);
    second_ = static_cast<std::uint32_t>(bits >> 32);
  }

  // One draw for each of the block's elements from i on: uniform integers below 2^24, as floats. Two rounds of multiplying and
  // folding, with the constants of a 32-bit mix of little bias (Wellons, "hash-prospector"), and one half of the key before each.
  HWY_INLINE VFloats at(std::size_t i) const {
    const Words d;
    auto x = hn::Add(counted_from(i), hn::Set(d, first_));
    x = hn::Mul(hn::Xor(x, hn::ShiftRight<16>(x)), hn::Set(d, 0x7FEB352D));
    x = hn::Xor(x, hn::Set(d, second_));
    x = hn::Mul(hn::Xor(x, hn::ShiftRight<15>(x)), hn::Set(d, 0x846CA68B));
    x = hn::Xor(x, hn::ShiftRight<16>(x));
    return hn::ConvertTo(Floats(), hn::BitCast(Integers(), hn::ShiftRight<8>(x)));
  }

 private:
  std::uint32_t first_, second_;
};

}  // namespace shoal::compress::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
