// SPDX-License-Identifier: Apache-2.0
// The operations on floats, written once for all formats. Compiled once for each instruction set; internal to this folder.
//
// A format F says how its elements lie in a vector and how they are computed with:
//   F::D            tag of a vector of elements as they lie in memory, of a size that suits the computation
//   F::DCompare     the same for max and min, which compare elements as they lie
//   F::Wide         what is computed with: a group of vectors of float32 (or float64), in whatever order decode puts them
//   F::decode(v)    exact
//   F::encode(w)    rounds once, to nearest, ties to even
//   F::kLargest     the largest finite value
//   F::maximum(a, b), F::minimum(a, b)
//   F::sum(a, b), F::product(a, b)   encode(decode(a) + decode(b)), or whatever gives the same bits sooner
#if defined(SHOAL_DEVICE_REDUCE_FLOAT_INL) == defined(HWY_TARGET_TOGGLE)  // include guard, per instruction set
#ifdef SHOAL_DEVICE_REDUCE_FLOAT_INL
#undef SHOAL_DEVICE_REDUCE_FLOAT_INL
#else
#define SHOAL_DEVICE_REDUCE_FLOAT_INL
#endif

#include "device/reduce_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shoal::device::HWY_NAMESPACE {

using Float32 = hn::ScalableTag<float>;

// N vectors of T's, computed with side by side.
template <class T, std::size_t N>
struct Group {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  V v[N];
};

template <class T, std::size_t N>
HWY_INLINE Group<T, N> add(Group<T, N> a, Group<T, N> b) {
  for (std::size_t i = 0; i < N; ++i) a.v[i] = hn::Add(a.v[i], b.v[i]);
  return a;
}

template <class T, std::size_t N>
HWY_INLINE Group<T, N> multiply(Group<T, N> a, Group<T, N> b) {
  for (std::size_t i = 0; i < N; ++i) a.v[i] = hn::Mul(a.v[i], b.v[i]);
  return a;
}

template <class T, std::size_t N>
HWY_INLINE Group<T, N> multiply(Group<T, N> a, T factor) {
  for (std::size_t i = 0; i < N; ++i) a.v[i] = hn::Mul(a.v[i], hn::Set(hn::ScalableTag<T>(), factor));
  return a;
}

// a + b, but what finite operands make larger than `largest` becomes `largest`; an infinite operand lifts the limit to infinity.
// Sums beyond the limit are rare: one branch for all lanes.
template <class T>
HWY_INLINE hn::Vec<hn::ScalableTag<T>> add_clamped(hn::Vec<hn::ScalableTag<T>> a, hn::Vec<hn::ScalableTag<T>> b, T largest) {
  const hn::ScalableTag<T> d;
  const auto sum = hn::Add(a, b);
  const auto most = hn::Set(d, largest);
  if (HWY_LIKELY(hn::AllFalse(d, hn::Gt(hn::Abs(sum), most)))) return sum;  // NaN is no larger
  const auto limit = hn::Max(most, hn::Max(hn::Abs(a), hn::Abs(b)));
  return hn::IfThenElse(hn::Gt(hn::Abs(sum), limit), hn::CopySign(limit, sum), sum);
}

template <class T, std::size_t N>
HWY_INLINE Group<T, N> add_clamped(Group<T, N> a, Group<T, N> b, T largest) {
  for (std::size_t i = 0; i < N; ++i) a.v[i] = add_clamped(a.v[i], b.v[i], largest);
  return a;
}

// Elements of 8 or 16 bits, compared as integers: sign and magnitude become two's complement, which puts -0 below +0. Infinity
// and kNaN are bit patterns without sign; where the format has no infinity, the first is its largest value.
template <class T>
struct Ordered {
  using D = hn::ScalableTag<std::make_unsigned_t<T>>;
  using DI = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  using VI = hn::Vec<DI>;
  static constexpr T kMagnitude = static_cast<T>(~(T{1} << (8 * sizeof(T) - 1)));

  static HWY_INLINE VI key(VI v) { return hn::Xor(v, hn::And(hn::BroadcastSignBit(v), hn::Set(DI(), kMagnitude))); }

  static HWY_INLINE V unless_nan(VI key_of_result, VI a, VI b, T infinity, T nan) {
    const DI d;
    const auto magnitude = hn::Max(hn::And(a, hn::Set(d, kMagnitude)), hn::And(b, hn::Set(d, kMagnitude)));
    const auto is_nan = hn::Gt(magnitude, hn::Set(d, infinity));
    return hn::BitCast(D(), hn::IfThenElse(is_nan, hn::Set(d, nan), key(key_of_result)));
  }

  static HWY_INLINE V maximum(V a, V b, T infinity, T nan) {
    const VI x = hn::BitCast(DI(), a);
    const VI y = hn::BitCast(DI(), b);
    return unless_nan(hn::Max(key(x), key(y)), x, y, infinity, nan);
  }

  static HWY_INLINE V minimum(V a, V b, T infinity, T nan) {
    const VI x = hn::BitCast(DI(), a);
    const VI y = hn::BitCast(DI(), b);
    return unless_nan(hn::Min(key(x), key(y)), x, y, infinity, nan);
  }
};

template <class F>
using Elements = hn::Vec<typename F::D>;
template <class F>
using Compared = hn::Vec<typename F::DCompare>;

template <class F>
struct Sum {
  explicit Sum(const Scale& /*scale*/) {}
  HWY_INLINE Elements<F> operator()(Elements<F> a, Elements<F> b) const { return F::sum(a, b); }
};

template <class F>
struct Product {
  explicit Product(const Scale& /*scale*/) {}
  HWY_INLINE Elements<F> operator()(Elements<F> a, Elements<F> b) const { return F::product(a, b); }
};

template <class F>
struct Maximum {
  explicit Maximum(const Scale& /*scale*/) {}
  HWY_INLINE Compared<F> operator()(Compared<F> a, Compared<F> b) const { return F::maximum(a, b); }
};

template <class F>
struct Minimum {
  explicit Minimum(const Scale& /*scale*/) {}
  HWY_INLINE Compared<F> operator()(Compared<F> a, Compared<F> b) const { return F::minimum(a, b); }
};

// The sum of an average: shares of finite values, whose sum is finite but for rounding.
template <class F>
struct SumOfShares {
  explicit SumOfShares(const Scale& /*scale*/) {}
  HWY_INLINE Elements<F> operator()(Elements<F> a, Elements<F> b) const {
    if constexpr (F::kSaturates)
      return F::sum(a, b);
    else
      return F::encode(add_clamped(F::decode(a), F::decode(b), F::kLargest));
  }
};

template <class F>
struct Factor {
  explicit Factor(const Scale& scale) {
    if constexpr (std::is_same_v<decltype(factor), double>)
      factor = scale.factor64;
    else
      factor = scale.factor32;
  }
  HWY_INLINE Elements<F> operator()(Elements<F> v) const { return F::encode(multiply(F::decode(v), factor)); }
  std::remove_const_t<decltype(F::kLargest)> factor;
};

template <class F, class Load = Factor<F>>
const ReduceKernels* floats_of() {
  using D = typename F::D;
  static constexpr ReduceKernels kKernels[kReduceOps] = {
      kernels_of<D, Sum<F>>(),                         // sum
      kernels_of<D, Product<F>>(),                     // prod
      kernels_of<typename F::DCompare, Maximum<F>>(),  // max
      kernels_of<typename F::DCompare, Minimum<F>>(),  // min
      kernels_of<D, SumOfShares<F>, Load>(),           // avg
      kernels_of<D, Sum<F>, Load>(),                   // premul_sum
  };
  return kKernels;
}

}  // namespace shoal::device::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
