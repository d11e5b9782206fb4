// SPDX-License-Identifier: Apache-2.0
// What the codecs' kernels compute with: rows of 32 elements, in vectors of at most eight floats, so that the codes of a vector
// fit in a word. Compiled once for each instruction set (Highway's foreach_target.h includes the including file repeatedly);
// every one gives the same bits: sums have one order, and no operation is used that rounds differently somewhere. Internal to
// this folder.
#if defined(SHOAL_COMPRESS_VECTORS_INL) == defined(HWY_TARGET_TOGGLE)  // include guard, per instruction set
#ifdef SHOAL_COMPRESS_VECTORS_INL
#undef SHOAL_COMPRESS_VECTORS_INL
#else
#define SHOAL_COMPRESS_VECTORS_INL
#endif

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "device/convert.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace shoal::compress::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::CappedTag<float, 8>;
using Integers = hn::RebindToSigned<Floats>;
using Words = hn::RebindToUnsigned<Floats>;
using VFloats = hn::Vec<Floats>;
using VIntegers = hn::Vec<Integers>;
using VWords = hn::Vec<Words>;

constexpr std::size_t kLanes = hn::MaxLanes(Floats());
constexpr std::size_t kRow = 32;  // elements

constexpr std::uint32_t kSign = 0x80000000;
constexpr std::uint32_t kInfinity = 0x7F800000;

HWY_INLINE std::size_t whole_rows(std::size_t n) { return (n + kRow - 1) / kRow * kRow; }

// first, first + 1, ... (Highway's Iota of a variable goes by way of memory.)
HWY_INLINE VWords counted_from(std::size_t first) {
  return hn::Add(hn::Iota(Words(), 0), hn::Set(Words(), static_cast<std::uint32_t>(first)));
}

HWY_INLINE VFloats load(const float* from) { return hn::LoadU(Floats(), from); }

template <class T>
HWY_INLINE T read(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
HWY_INLINE void write(T value, std::byte* to) {
  std::memcpy(to, &value, sizeof value);
}

using Halves = hn::Rebind<std::uint16_t, Floats>;

// Memory of any alignment.
HWY_INLINE hn::Vec<Halves> load_halves(const std::byte* from) {
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(Halves(), read<std::uint16_t>(from));
#else
  return hn::LoadU(Halves(), reinterpret_cast<const std::uint16_t*>(from));
#endif
}
HWY_INLINE void store_halves(hn::Vec<Halves> v, std::byte* to) {
#if HWY_TARGET == HWY_SCALAR
  write(hn::GetLane(v), to);
#else
  hn::StoreU(v, Halves(), reinterpret_cast<std::uint16_t*>(to));
#endif
}

// The values of float16 bits, and floats rounded to them, to nearest, ties to even; NaN stays NaN. Where no instruction does it,
// Highway's own conversions cut off instead of rounding.
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
HWY_INLINE VFloats widened(hn::Vec<Halves> v) {
  std::uint16_t bits[kLanes];
  float values[kLanes];
  hn::StoreU(v, Halves(), bits);
  for (std::size_t i = 0; i < kLanes; ++i) values[i] = device::from_float16(bits[i]);
  return load(values);
}
HWY_INLINE hn::Vec<Halves> narrowed(VFloats v) {
  float values[kLanes];
  std::uint16_t bits[kLanes];
  hn::StoreU(v, Floats(), values);
  for (std::size_t i = 0; i < kLanes; ++i) bits[i] = device::to_float16(values[i]);
  return hn::LoadU(Halves(), bits);
}
#else
HWY_INLINE VFloats widened(hn::Vec<Halves> v) {
  return hn::PromoteTo(Floats(), hn::BitCast(hn::Rebind<hwy::float16_t, Floats>(), v));
}
HWY_INLINE hn::Vec<Halves> narrowed(VFloats v) {
  return hn::BitCast(Halves(), hn::DemoteTo(hn::Rebind<hwy::float16_t, Floats>(), v));
}
#endif

// The bits of max|x| over whole rows. Without their sign floats compare like integers, infinity above all numbers and NaN above
// infinity.
HWY_INLINE std::uint32_t largest_bits(const float* in, std::size_t n) {
  const Integers d;
  const auto magnitude = hn::Set(d, 0x7FFFFFFF);
  auto even = hn::Zero(d), odd = hn::Zero(d);
  for (std::size_t i = 0; i < n; i += 2 * kLanes) {
    even = hn::Max(even, hn::And(hn::BitCast(d, load(in + i)), magnitude));
    odd = hn::Max(odd, hn::And(hn::BitCast(d, load(in + i + kLanes)), magnitude));
  }
  return static_cast<std::uint32_t>(hn::GetLane(hn::MaxOfLanes(d, hn::Max(even, odd))));
}

// Sum of term(x) over whole rows, in float64 and in one order for all widths of vectors: sixteen partial sums, element i in the
// one of number i % 16, halved until one is left.
template <class Term>
HWY_INLINE double sum_of(const float* in, std::size_t n, const Term& term) {
  using Doubles = hn::CappedTag<double, 4>;
  using Singles = hn::Rebind<float, Doubles>;
  constexpr std::size_t kPartials = 16, kStep = hn::MaxLanes(Doubles());
  const Doubles d;
  hn::Vec<Doubles> partials[kPartials / kStep];
  for (auto& each : partials) each = hn::Zero(d);
  for (std::size_t i = 0; i < n; i += kPartials)
    for (std::size_t k = 0; k < kPartials / kStep; ++k)
      partials[k] = hn::Add(partials[k], term(hn::PromoteTo(d, hn::LoadU(Singles(), in + i + k * kStep))));
  double sums[kPartials];
  for (std::size_t k = 0; k < kPartials / kStep; ++k) hn::StoreU(partials[k], d, sums + k * kStep);
  for (std::size_t half = kPartials / 2; half > 0; half /= 2)
    for (std::size_t k = 0; k < half; ++k) sums[k] += sums[k + half];
  return sums[0];
}

// Where decoded elements go.
struct Assign {
  static constexpr bool kAdds = false;
  static HWY_INLINE void put(VFloats v, float* to) { hn::StoreU(v, Floats(), to); }
};
struct Accumulate {
  static constexpr bool kAdds = true;
  static HWY_INLINE void put(VFloats v, float* to) { hn::StoreU(hn::Add(load(to), v), Floats(), to); }
};

}  // namespace shoal::compress::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
