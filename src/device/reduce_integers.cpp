// SPDX-License-Identifier: Apache-2.0
// The integer kernels. Everything but max, min and division works on unsigned lanes: wrapping is defined there, and signed and
// unsigned types share one function.
#include <bit>
#include <type_traits>

#include "device/reduce_tables.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/reduce_integers.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "device/reduce_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shoal::device::HWY_NAMESPACE {

template <class T>
using Raw = hn::ScalableTag<std::make_unsigned_t<T>>;
template <class T>
using VecOf = hn::Vec<Raw<T>>;

template <class V>
HWY_INLINE V multiply(V a, V b) {
  return hn::Mul(a, b);
}

#if HWY_TARGET != HWY_SCALAR
// 8-bit lanes have no multiplication: the even and the odd ones in turn, as 16-bit lanes.
HWY_INLINE VecOf<std::uint8_t> multiply(VecOf<std::uint8_t> a8, VecOf<std::uint8_t> b8) {
  const Raw<std::uint16_t> d;
  const auto a = hn::BitCast(d, a8);
  const auto b = hn::BitCast(d, b8);
  const auto even = hn::And(hn::Mul(a, b), hn::Set(d, 0x00FF));
  const auto odd = hn::ShiftLeft<8>(hn::Mul(hn::ShiftRight<8>(a), hn::ShiftRight<8>(b)));
  return hn::BitCast(Raw<std::uint8_t>(), hn::Or(even, odd));
}

// The upper half of the product of two lanes.
HWY_INLINE VecOf<std::uint16_t> multiply_high(VecOf<std::uint16_t> a, VecOf<std::uint16_t> b) { return hn::MulHigh(a, b); }

HWY_INLINE VecOf<std::uint32_t> multiply_high(VecOf<std::uint32_t> a, VecOf<std::uint32_t> b) {
  const Raw<std::uint32_t> d;
  const Raw<std::uint64_t> wide;
  const auto even = hn::ShiftRight<32>(hn::MulEven(a, b));
  const auto odd = hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, a))), b);
  return hn::BitCast(d, hn::Or(even, hn::And(odd, hn::Set(wide, 0xFFFFFFFF00000000))));
}

HWY_INLINE VecOf<std::uint64_t> multiply_high(VecOf<std::uint64_t> a, VecOf<std::uint64_t> b) {
  return hn::InterleaveUpper(Raw<std::uint64_t>(), hn::MulEven(a, b), hn::MulOdd(a, b));
}
#endif

template <class T>
struct Sum {
  explicit Sum(const Scale& /*scale*/) {}
  HWY_INLINE VecOf<T> operator()(VecOf<T> a, VecOf<T> b) const { return hn::Add(a, b); }
};

template <class T>
struct Product {
  explicit Product(const Scale& /*scale*/) {}
  HWY_INLINE VecOf<T> operator()(VecOf<T> a, VecOf<T> b) const { return multiply(a, b); }
};

template <class T>
struct Maximum {
  explicit Maximum(const Scale& /*scale*/) {}
  HWY_INLINE VecOf<T> operator()(VecOf<T> a, VecOf<T> b) const {
    const hn::ScalableTag<T> d;
    return hn::BitCast(Raw<T>(), hn::Max(hn::BitCast(d, a), hn::BitCast(d, b)));
  }
};

template <class T>
struct Minimum {
  explicit Minimum(const Scale& /*scale*/) {}
  HWY_INLINE VecOf<T> operator()(VecOf<T> a, VecOf<T> b) const {
    const hn::ScalableTag<T> d;
    return hn::BitCast(Raw<T>(), hn::Min(hn::BitCast(d, a), hn::BitCast(d, b)));
  }
};

template <class T>
struct Factor {
  explicit Factor(const Scale& scale) : factor(static_cast<T>(scale.factor_bits)) {}
  HWY_INLINE VecOf<T> operator()(VecOf<T> v) const { return multiply(v, hn::Set(Raw<T>(), factor)); }
  T factor;
};

#if HWY_TARGET == HWY_SCALAR
template <class T>
struct Divide {
  explicit Divide(const Scale& scale) : divisor(scale.divisor) {}
  HWY_INLINE VecOf<T> operator()(VecOf<T> v) const {
    using U = std::make_unsigned_t<T>;
    const U value = hn::GetLane(v);
    const bool negative = std::is_signed_v<T> && static_cast<T>(value) < 0;
    const U magnitude = negative ? static_cast<U>(0U - value) : value;
    const U quotient = static_cast<U>(magnitude / divisor);
    return hn::Set(Raw<T>(), negative ? static_cast<U>(0U - quotient) : quotient);
  }
  std::uint64_t divisor;
};
#else
// Division of unsigned lanes of type U by a divisor known at run time, as a multiplication: Granlund and Montgomery,
// "Division by invariant integers using multiplication", 1994, figure 4.1. Exact for every dividend.
template <class U>
class Divisor {
 public:
  explicit Divisor(std::uint64_t divisor) {
    __extension__ using Wide = unsigned __int128;
    constexpr int kBits = 8 * sizeof(U);
    const int log2 = static_cast<int>(std::bit_width(divisor - 1));
    multiplier_ = static_cast<U>(((Wide{1} << kBits) * ((Wide{1} << log2) - divisor)) / divisor + 1);
    shift1_ = log2 < 1 ? log2 : 1;
    shift2_ = log2 > 1 ? log2 - 1 : 0;
  }
  HWY_INLINE VecOf<U> quotient(VecOf<U> v) const {
    const auto high = multiply_high(v, hn::Set(Raw<U>(), multiplier_));
    return hn::ShiftRightSame(hn::Add(high, hn::ShiftRightSame(hn::Sub(v, high), shift1_)), shift2_);
  }

 private:
  U multiplier_;
  int shift1_;
  int shift2_;
};

// 8-bit lanes divide as 16-bit lanes; a divisor beyond those gives 0, as their largest value does.
template <>
class Divisor<std::uint8_t> {
 public:
  explicit Divisor(std::uint64_t divisor) : wide_(divisor < 0xFFFF ? divisor : 0xFFFF) {}
  HWY_INLINE VecOf<std::uint8_t> quotient(VecOf<std::uint8_t> v8) const {
    const Raw<std::uint16_t> d;
    const auto v = hn::BitCast(d, v8);
    const auto even = wide_.quotient(hn::And(v, hn::Set(d, 0x00FF)));
    const auto odd = wide_.quotient(hn::ShiftRight<8>(v));
    return hn::BitCast(Raw<std::uint8_t>(), hn::Or(even, hn::ShiftLeft<8>(odd)));
  }

 private:
  Divisor<std::uint16_t> wide_;
};

// By the number of ranks, toward zero.
template <class T>
struct Divide {
  explicit Divide(const Scale& scale) : divisor(scale.divisor) {}
  HWY_INLINE VecOf<T> operator()(VecOf<T> v) const {
    if constexpr (std::is_signed_v<T>) {
      const auto sign = hn::BitCast(Raw<T>(), hn::BroadcastSignBit(hn::BitCast(hn::ScalableTag<T>(), v)));
      const auto magnitude = hn::Sub(hn::Xor(v, sign), sign);
      return hn::Sub(hn::Xor(divisor.quotient(magnitude), sign), sign);
    } else {
      return divisor.quotient(v);
    }
  }
  Divisor<std::make_unsigned_t<T>> divisor;
};
#endif

template <class T>
const ReduceKernels* integers_of() {
  using U = std::make_unsigned_t<T>;
  static constexpr ReduceKernels kKernels[kReduceOps] = {
      kernels_of<Raw<T>, Sum<U>>(),                       // sum
      kernels_of<Raw<T>, Product<U>>(),                   // prod
      kernels_of<Raw<T>, Maximum<T>>(),                   // max
      kernels_of<Raw<T>, Minimum<T>>(),                   // min
      kernels_of<Raw<T>, Sum<U>, Identity, Divide<T>>(),  // avg
      kernels_of<Raw<T>, Sum<U>, Factor<U>>(),            // premul_sum
  };
  return kKernels;
}

const ReduceKernels* integer_table(DataType type) {
  switch (type) {
    case DataType::int8: return integers_of<std::int8_t>();
    case DataType::uint8: return integers_of<std::uint8_t>();
    case DataType::int32: return integers_of<std::int32_t>();
    case DataType::uint32: return integers_of<std::uint32_t>();
    case DataType::int64: return integers_of<std::int64_t>();
    case DataType::uint64: return integers_of<std::uint64_t>();
    case DataType::float16:
    case DataType::float32:
    case DataType::float64:
    case DataType::bfloat16:
    case DataType::float8_e4m3:
    case DataType::float8_e5m2: break;
  }
  return nullptr;
}

}  // namespace shoal::device::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::device {
HWY_EXPORT(integer_table);
const ReduceKernels* integer_kernels(DataType type) { return HWY_DYNAMIC_DISPATCH(integer_table)(type); }
}  // namespace shoal::device
#endif
