// SPDX-License-Identifier: Apache-2.0
// An inner product is added in 16 lanes whatever the width of a vector is: lane l takes the elements l, l + 16, ...; then lanes
// are added in halves. So the bits are the same with 4, 8 and 16 lanes a register, and without any.
#include "compress/low_rank/low_rank.h"

#include <algorithm>
#include <array>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compress/low_rank/low_rank.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace shoal::compress::low_rank::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t kLanes = 16;
using Tag = hn::CappedTag<float, kLanes>;
constexpr std::size_t kVector = hn::MaxLanes(Tag());  // lanes of a register
constexpr std::size_t kParts = kLanes / kVector;
constexpr std::size_t kRowsAtOnce = 4;

HWY_INLINE float dot(const float* a, const float* b, std::size_t n) {
  const Tag d;
  hn::Vec<Tag> sums[kParts];
  for (auto& each : sums) each = hn::Zero(d);
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (std::size_t part = 0; part < kParts; ++part) {
      const std::size_t at = i + part * kVector;
      sums[part] = hn::Add(sums[part], hn::Mul(hn::LoadU(d, a + at), hn::LoadU(d, b + at)));
    }
  alignas(64) std::array<float, kLanes> lanes;
  for (std::size_t part = 0; part < kParts; ++part) hn::StoreU(sums[part], d, lanes.data() + part * kVector);
  for (std::size_t lane = 0; i < n; ++i, ++lane) lanes[lane] += a[i] * b[i];
  for (std::size_t half = kLanes / 2; half > 0; half /= 2)
    for (std::size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  return lanes[0];
}

void multiply(const Rows& rows, const float* q, std::size_t rank, float* p, std::size_t height) {
  for (std::size_t i = 0; i < rows.count; ++i)
    for (std::size_t j = 0; j < rank; ++j)
      p[j * height + rows.first + i] = dot(rows.data + i * rows.columns, q + j * rows.columns, rows.columns);
}

// sum += a[0] * row 0 + a[1] * row 1 + ..., one after the other.
template <std::size_t kRows>
HWY_INLINE void add_rows(const float* row, std::size_t columns, const float* a, float* sum) {
  const Tag d;
  std::size_t k = 0;
  for (; k + kVector <= columns; k += kVector) {
    auto v = hn::LoadU(d, sum + k);
    for (std::size_t i = 0; i < kRows; ++i) v = hn::Add(v, hn::Mul(hn::Set(d, a[i]), hn::LoadU(d, row + i * columns + k)));
    hn::StoreU(v, d, sum + k);
  }
  for (; k < columns; ++k)
    for (std::size_t i = 0; i < kRows; ++i) sum[k] += a[i] * row[i * columns + k];
}

void multiply_transposed(const Rows& rows, const float* p, std::size_t height, std::size_t rank, float* q) {
  std::size_t i = 0;
  for (; i + kRowsAtOnce <= rows.count; i += kRowsAtOnce)
    for (std::size_t j = 0; j < rank; ++j)
      add_rows<kRowsAtOnce>(rows.data + i * rows.columns, rows.columns, p + j * height + rows.first + i, q + j * rows.columns);
  for (; i < rows.count; ++i)
    for (std::size_t j = 0; j < rank; ++j)
      add_rows<1>(rows.data + i * rows.columns, rows.columns, p + j * height + rows.first + i, q + j * rows.columns);
}

void expand(const float* p, std::size_t height, const float* q, std::size_t columns, std::size_t rank, std::size_t row,
            float* out) {
  const Tag d;
  std::size_t k = 0;
  for (; k + kVector <= columns; k += kVector) {
    auto v = hn::Zero(d);
    for (std::size_t j = 0; j < rank; ++j)
      v = hn::Add(v, hn::Mul(hn::Set(d, p[j * height + row]), hn::LoadU(d, q + j * columns + k)));
    hn::StoreU(v, d, out + k);
  }
  for (; k < columns; ++k) {
    float v = 0;
    for (std::size_t j = 0; j < rank; ++j) v += p[j * height + row] * q[j * columns + k];
    out[k] = v;
  }
}

}  // namespace shoal::compress::low_rank::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::compress::low_rank {
namespace {

HWY_EXPORT(multiply);
HWY_EXPORT(multiply_transposed);
HWY_EXPORT(expand);

// A column that loses all but this part of its length to those before it is their rounding. [of its length before]
constexpr double kDependent = 1e-6;

double inner(const float* a, const float* b, std::size_t n) {
  constexpr std::size_t kSums = 8;
  std::array<double, kSums> sums{};
  std::size_t i = 0;
  for (; i + kSums <= n; i += kSums)
    for (std::size_t s = 0; s < kSums; ++s) sums[s] += static_cast<double>(a[i + s]) * static_cast<double>(b[i + s]);
  for (; i < n; ++i) sums[0] += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

}  // namespace

void multiply(const Rows& rows, const float* q, std::size_t rank, float* p, std::size_t height) {
  HWY_DYNAMIC_DISPATCH(multiply)(rows, q, rank, p, height);
}

void multiply_transposed(const Rows& rows, const float* p, std::size_t height, std::size_t rank, float* q) {
  HWY_DYNAMIC_DISPATCH(multiply_transposed)(rows, p, height, rank, q);
}

void expand(const float* p, std::size_t height, const float* q, std::size_t columns, std::size_t rank, std::size_t row,
            float* out) {
  HWY_DYNAMIC_DISPATCH(expand)(p, height, q, columns, rank, row, out);
}

void orthonormalise(float* vectors, std::size_t length, std::size_t rank, int passes) {
  for (std::size_t j = 0; j < rank; ++j) {
    float* v = vectors + j * length;
    const double before = std::sqrt(inner(v, v, length));
    for (int pass = 0; pass < passes; ++pass)
      for (std::size_t i = 0; i < j; ++i) {
        const float* u = vectors + i * length;
        const double along = inner(u, v, length);
        for (std::size_t k = 0; k < length; ++k) v[k] = static_cast<float>(v[k] - along * u[k]);
      }
    const double left = std::sqrt(inner(v, v, length));
    if (!(left > kDependent * before)) {
      std::fill_n(v, length, 0.0F);
      continue;
    }
    for (std::size_t k = 0; k < length; ++k) v[k] = static_cast<float>(v[k] / left);
  }
}

}  // namespace shoal::compress::low_rank
#endif
