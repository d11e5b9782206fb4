// SPDX-License-Identifier: Apache-2.0
// The one loop that every kernel runs in: load a vector from each source, apply the operation, store. Compiled once for each
// instruction set (Highway's foreach_target.h includes the including file repeatedly). Internal to this folder.
//
// The end of a range is a full vector that overlaps the last one of the loop, so nothing is read or written outside the range.
// Its result is computed before the loop stores anything and stored after it: with an output that is also an input, an element
// must not be combined twice.
#if defined(SHOAL_DEVICE_REDUCE_LOOP_INL) == defined(HWY_TARGET_TOGGLE)  // include guard, per instruction set
#ifdef SHOAL_DEVICE_REDUCE_LOOP_INL
#undef SHOAL_DEVICE_REDUCE_LOOP_INL
#else
#define SHOAL_DEVICE_REDUCE_LOOP_INL
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "device/reduce.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace shoal::device::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Memory is accessed as bytes: pointers need not be aligned, not even for the element type.
template <class D>
HWY_INLINE hn::Vec<D> load([[maybe_unused]] D d, const std::byte* from) {
#if HWY_TARGET == HWY_SCALAR
  hn::TFromD<D> value;
  std::memcpy(&value, from, sizeof value);
  return hn::Set(d, value);
#else
  const hn::Repartition<std::uint8_t, D> bytes;
  return hn::BitCast(d, hn::LoadU(bytes, reinterpret_cast<const std::uint8_t*>(from)));
#endif
}

template <class D>
HWY_INLINE void store([[maybe_unused]] D d, hn::Vec<D> v, std::byte* to) {
#if HWY_TARGET == HWY_SCALAR
  const hn::TFromD<D> value = hn::GetLane(v);
  std::memcpy(to, &value, sizeof value);
#else
  const hn::Repartition<std::uint8_t, D> bytes;
  hn::StoreU(hn::BitCast(bytes, v), bytes, reinterpret_cast<std::uint8_t*>(to));
#endif
}

// Past the caches; `to` is a multiple of the vector's size.
template <class D>
HWY_INLINE void store_streaming([[maybe_unused]] D d, hn::Vec<D> v, std::byte* to) {
#if HWY_TARGET == HWY_SCALAR
  store(d, v, to);
#else
  const hn::Repartition<std::uint8_t, D> bytes;
  hn::Stream(hn::BitCast(bytes, v), bytes, reinterpret_cast<std::uint8_t*>(to));
#endif
}

// Fewer elements than one vector has: masked where the instruction set can, else by way of full vectors on the stack.
template <class D, class Op, class... Source>
HWY_NOINLINE void transform_short(D d, Target to, std::size_t bytes, Op op, const Source*... source) {
  constexpr std::size_t kStep = hn::MaxLanes(D()) * sizeof(hn::TFromD<D>);
#if HWY_TARGET != HWY_SCALAR
  if constexpr (sizeof(hn::TFromD<D>) >= 4) {
    // Masked loads and stores touch only what the mask names. (By way of the stack every load would wait for the stores before
    // it: the smallest messages are about a few nanoseconds.)
    using T = hn::TFromD<D>;
    const auto mask = hn::FirstN(d, bytes / sizeof(T));
    const auto v = op(hn::MaskedLoad(mask, d, reinterpret_cast<const T*>(source))...);
    if (to.also != nullptr) hn::BlendedStore(v, mask, d, static_cast<T*>(to.also));
    hn::BlendedStore(v, mask, d, static_cast<T*>(to.out));
    return;
  }
#endif
  struct Padded {
    Padded(const std::byte* from, std::size_t n) { std::memcpy(storage, from, n); }
    std::byte storage[kStep] = {};
  };
  std::byte result[kStep];
  store(d, op(load(d, Padded(source, bytes).storage)...), result);
  std::memcpy(to.out, result, bytes);
  if (to.also != nullptr) std::memcpy(to.also, result, bytes);
}

// Bytes up to the first address at which the loop can store whole vectors past the caches; nothing to gain or no such address
// for this element size: `bytes`.
HWY_INLINE std::size_t bytes_before_streaming(Target to, std::size_t bytes, std::size_t element, std::size_t step) {
  const auto address = reinterpret_cast<std::uintptr_t>(to.out);
  if (!to.stream || address % element != 0 || bytes < 2 * step) return bytes;
  return (step - address % step) % step;
}

// out[i] = also[i] = op(source[i]...) for n elements of D.
template <class D, class Op, class... Source>
HWY_INLINE void transform(D d, Target to, std::size_t n, const Op& op, const Source*... source) {
  using V = hn::Vec<D>;
  const std::size_t element = sizeof(hn::TFromD<D>);
  const std::size_t step = hn::Lanes(d) * element;
  const std::size_t bytes = n * element;
  if (n == 0) return;
  if (bytes < step) return transform_short(d, to, bytes, op, source...);

  auto* const out = static_cast<std::byte*>(to.out);
  auto* const also = static_cast<std::byte*>(to.also);
  const std::size_t last = bytes - step;
  const V at_end = op(load(d, source + last)...);
  const std::size_t unaligned = bytes_before_streaming(to, bytes, element, step);
  const bool stream = unaligned < bytes;
  const V at_begin = stream ? op(load(d, source)...) : at_end;
  for (std::size_t i = stream ? unaligned : 0; i <= last; i += step) {
    const V v = op(load(d, source + i)...);
    if (also != nullptr) store(d, v, also + i);
    if (stream)
      store_streaming(d, v, out + i);
    else
      store(d, v, out + i);
  }
  if (stream) {
    hwy::FlushStream();
    store(d, at_begin, out);
    if (also != nullptr) store(d, at_begin, also);
  }
  store(d, at_end, out + last);
  if (also != nullptr) store(d, at_end, also + last);
}

// An operation that changes nothing, and how the parts of a reduction are put together: finish(combine(load(a), b)).
struct Identity {
  explicit Identity(const Scale& /*scale*/) {}
  template <class V>
  HWY_INLINE V operator()(V v) const {
    return v;
  }
};

template <class Load, class Combine, class Finish>
struct Reduction {
  explicit Reduction(const Scale& scale) : load(scale), combine(scale), finish(scale) {}
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return finish(combine(load(a), b));
  }
  Load load;
  Combine combine;
  Finish finish;
};

template <class Load, class Finish>
struct Mapping {
  explicit Mapping(const Scale& scale) : load(scale), finish(scale) {}
  template <class V>
  HWY_INLINE V operator()(V a) const {
    return finish(load(a));
  }
  Load load;
  Finish finish;
};

template <class D, class Op>
void combine(Target to, const void* a, const void* b, std::size_t n, const Scale& scale) {
  transform(D(), to, n, Op(scale), static_cast<const std::byte*>(a), static_cast<const std::byte*>(b));
}

template <class D, class Op>
void map(Target to, const void* a, std::size_t n, const Scale& scale) {
  transform(D(), to, n, Op(scale), static_cast<const std::byte*>(a));
}

template <class D>
void map_nothing(Target to, const void* a, std::size_t n, const Scale& /*scale*/) {
  copy(to, std::span(static_cast<const std::byte*>(a), n * sizeof(hn::TFromD<D>)));
}

template <class D, class Load, class Finish>
constexpr MapFn map_of() {
  if constexpr (std::is_same_v<Load, Identity> && std::is_same_v<Finish, Identity>)
    return &map_nothing<D>;
  else
    return &map<D, Mapping<Load, Finish>>;
}

// Equal parts give equal functions: what scales nothing is compiled once.
template <class D, class Combine, class Load = Identity, class Finish = Identity>
constexpr ReduceKernels kernels_of() {
  return {.combine = &combine<D, Reduction<Identity, Combine, Identity>>,
          .combine_input = &combine<D, Reduction<Load, Combine, Identity>>,
          .combine_final = &combine<D, Reduction<Identity, Combine, Finish>>,
          .combine_input_final = &combine<D, Reduction<Load, Combine, Finish>>,
          .load_input = map_of<D, Load, Identity>(),
          .load_input_final = map_of<D, Load, Finish>()};
}

}  // namespace shoal::device::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
