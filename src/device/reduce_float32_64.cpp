// SPDX-License-Identifier: Apache-2.0
// The kernels of float32 and float64, which are computed with as they are.
#include <limits>

#include "device/reduce_tables.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/reduce_float32_64.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "device/reduce_float-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shoal::device::HWY_NAMESPACE {

template <class T>
struct Native {
  using D = hn::ScalableTag<T>;
  using DCompare = D;
  using V = hn::Vec<D>;
  using Wide = Group<T, 1>;
  static constexpr T kLargest = std::numeric_limits<T>::max();
  static constexpr bool kSaturates = false;

  static HWY_INLINE Wide decode(V v) { return {{v}}; }
  static HWY_INLINE V encode(Wide w) { return w.v[0]; }
  static HWY_INLINE V sum(V a, V b) { return hn::Add(a, b); }
  static HWY_INLINE V product(V a, V b) { return hn::Mul(a, b); }

  // Vector instructions may return either operand when both are zeros, so both orders are asked: "and" leaves the sign bit only
  // where both have it, "or" where any has; other than for zeros the two results are the same number.
  static HWY_INLINE V maximum(V a, V b) { return unless_nan(hn::And(hn::Max(a, b), hn::Max(b, a)), a, b); }
  static HWY_INLINE V minimum(V a, V b) { return unless_nan(hn::Or(hn::Min(a, b), hn::Min(b, a)), a, b); }

  static HWY_INLINE V unless_nan(V result, V a, V b) {
    const auto is_nan = hn::Or(hn::IsNaN(a), hn::IsNaN(b));
    return hn::IfThenElse(is_nan, hn::Set(D(), std::numeric_limits<T>::quiet_NaN()), result);
  }
};

const ReduceKernels* float32_64_table(DataType type) {
  return type == DataType::float32 ? floats_of<Native<float>>() : floats_of<Native<double>>();
}

}  // namespace shoal::device::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::device {
HWY_EXPORT(float32_64_table);
const ReduceKernels* float32_64_kernels(DataType type) { return HWY_DYNAMIC_DISPATCH(float32_64_table)(type); }
}  // namespace shoal::device
#endif
