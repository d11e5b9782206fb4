// SPDX-License-Identifier: Apache-2.0
#include "compress/sparse/kernels.h"

#include <algorithm>
#include <array>

#include "compress/sparse/floats.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compress/sparse/kernels.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace shoal::compress::sparse::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

template <bool stream>
HWY_INLINE void put(V v, float* to) {
  if constexpr (stream)
    hn::Stream(v, D(), to);
  else
    hn::StoreU(v, D(), to);
}

// The rules are constants, so that the loop does not ask. remembered: 0 nothing, 1 a residual, 2 a velocity, too.
template <int remembered, bool nesterov, bool stream>
std::size_t run(const Accumulation& a, std::size_t begin, std::size_t end, std::uint32_t threshold, std::uint32_t* indices,
                float* values, std::uint32_t& largest) {
  const D d;
  const hn::RebindToSigned<D> bits;
  const hn::RebindToUnsigned<D> places;
  const auto below = hn::Set(bits, static_cast<std::int32_t>(threshold - 1));
  const V scale = hn::Set(d, a.scale);
  [[maybe_unused]] const V momentum = hn::Set(d, a.momentum);
  const std::size_t lanes = hn::Lanes(d);
  auto most = hn::Zero(bits);
  std::size_t taken = 0;
  std::size_t i = begin;
  for (; i + lanes <= end; i += lanes) {
    const V g = hn::Mul(scale, hn::LoadU(d, a.input + i));
    V v = g;
    if constexpr (remembered == 1) v = hn::Add(hn::LoadU(d, a.residual + i), g);
    if constexpr (remembered == 2) {
      V u = hn::LoadU(d, a.velocity + i);
      u = nesterov ? hn::Mul(momentum, hn::Add(u, g)) : hn::Add(hn::Mul(momentum, u), g);
      v = hn::Add(hn::LoadU(d, a.residual + i), u);
      if constexpr (nesterov) v = hn::Add(v, g);
      put<stream>(u, a.next_velocity + i);
    }
    if constexpr (remembered > 0) put<stream>(v, a.next_residual + i);
    const auto size = hn::BitCast(bits, hn::Abs(v));
    most = hn::Max(most, size);
    const auto over = hn::Gt(size, below);
    if (HWY_LIKELY(hn::AllFalse(bits, over))) continue;
    hn::CompressStore(hn::Iota(places, static_cast<std::uint32_t>(i)), hn::RebindMask(places, over), places, indices + taken);
    taken += hn::CompressStore(v, hn::RebindMask(d, over), d, values + taken);
  }
  if constexpr (stream) hwy::FlushStream();
  largest = std::max(largest, static_cast<std::uint32_t>(hn::GetLane(hn::MaxOfLanes(bits, most))));
  for (; i < end; ++i) {
    float u = 0;
    const float v = accumulated(a, i, u);
    if constexpr (remembered == 2) a.next_velocity[i] = u;
    if constexpr (remembered > 0) a.next_residual[i] = v;
    largest = std::max(largest, magnitude(v));
    if (magnitude(v) < threshold) continue;
    indices[taken] = static_cast<std::uint32_t>(i);
    values[taken++] = v;
  }
  return taken;
}

template <bool stream>
std::size_t run_rule(const Accumulation& a, std::size_t begin, std::size_t end, std::uint32_t threshold, std::uint32_t* indices,
                     float* values, std::uint32_t& largest) {
  if (a.residual == nullptr) return run<0, false, false>(a, begin, end, threshold, indices, values, largest);
  if (a.velocity == nullptr) return run<1, false, stream>(a, begin, end, threshold, indices, values, largest);
  if (a.nesterov) return run<2, true, stream>(a, begin, end, threshold, indices, values, largest);
  return run<2, false, stream>(a, begin, end, threshold, indices, values, largest);
}

std::size_t accumulate_vectors(const Accumulation& a, std::size_t begin, std::size_t end, std::uint32_t threshold,
                               std::uint32_t* indices, float* values, std::uint32_t& largest) {
  return a.stream ? run_rule<true>(a, begin, end, threshold, indices, values, largest)
                  : run_rule<false>(a, begin, end, threshold, indices, values, largest);
}

// Both ends are on boundaries of kAlignment.
void fill_zero_streaming(float* out, std::size_t n) {
  const V zero = hn::Zero(D());
  for (std::size_t i = 0; i < n; i += hn::Lanes(D())) hn::Stream(zero, D(), out + i);
  hwy::FlushStream();
}

}  // namespace shoal::compress::sparse::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::compress::sparse {
HWY_EXPORT(accumulate_vectors);
HWY_EXPORT(fill_zero_streaming);

std::size_t accumulate(const Accumulation& a, std::size_t begin, std::size_t end, std::uint32_t threshold, std::uint32_t* indices,
                       float* values, std::uint32_t& largest) {
  return HWY_DYNAMIC_DISPATCH(accumulate_vectors)(a, begin, end, threshold, indices, values, largest);
}

bool advance(const Accumulation& a, std::size_t n) {
  std::array<std::uint32_t, kSlack> no_indices;
  std::array<float, kSlack> no_values;
  std::uint32_t largest = 0;
  for (std::size_t begin = 0; begin < n; begin += kBlock)
    accumulate(a, begin, std::min(n, begin + kBlock), kTakeNone, no_indices.data(), no_values.data(), largest);
  return largest < kInfinite;
}

void fill_zero(float* out, std::size_t n) {
  const auto address = reinterpret_cast<std::uintptr_t>(out);
  if (n * sizeof(float) < kStreamBytes || address % sizeof(float) != 0) {
    std::fill_n(out, n, 0.0F);
    return;
  }
  constexpr std::size_t kStep = kAlignment / sizeof(float);
  const std::size_t before = (kAlignment - address % kAlignment) % kAlignment / sizeof(float);
  const std::size_t middle = (n - before) / kStep * kStep;
  std::fill_n(out, before, 0.0F);
  HWY_DYNAMIC_DISPATCH(fill_zero_streaming)(out + before, middle);
  std::fill_n(out + before + middle, n - before - middle, 0.0F);
}

double sum_of_squares(const float* x, std::size_t n) {
  std::array<double, 16> sums{};
  std::size_t i = 0;
  for (; i + sums.size() <= n; i += sums.size())
    for (std::size_t j = 0; j < sums.size(); ++j) sums[j] += static_cast<double>(x[i + j]) * static_cast<double>(x[i + j]);
  for (; i < n; ++i) sums[i % sums.size()] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  double sum = 0;
  for (const double each : sums) sum += each;
  return sum;
}

}  // namespace shoal::compress::sparse
#endif
