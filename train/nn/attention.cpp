// SPDX-License-Identifier: Apache-2.0
#include "train/nn/attention.h"

#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace shoal::train {
namespace {

// A block's scores, 64 x 256 float32 = 64 KiB, stay in the second-level cache.
constexpr std::size_t kQueries = 64, kKeys = 256;

template <typename T>
constexpr T kNothing = -std::numeric_limits<T>::infinity();

// c (m, n) = alpha a b + beta c; a (m, k) or its transpose (k, m), b (k, n) or (n, k).
void product(bool ta, bool tb, std::size_t m, std::size_t n, std::size_t k, float alpha, const float* a, std::size_t lda,
             const float* b, std::size_t ldb, float beta, float* c, std::size_t ldc) {
  cblas_sgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans, static_cast<int>(m),
              static_cast<int>(n), static_cast<int>(k), alpha, a, static_cast<int>(lda), b, static_cast<int>(ldb), beta, c,
              static_cast<int>(ldc));
}
void product(bool ta, bool tb, std::size_t m, std::size_t n, std::size_t k, double alpha, const double* a, std::size_t lda,
             const double* b, std::size_t ldb, double beta, double* c, std::size_t ldc) {
  cblas_dgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans, static_cast<int>(m),
              static_cast<int>(n), static_cast<int>(k), alpha, a, static_cast<int>(lda), b, static_cast<int>(ldb), beta, c,
              static_cast<int>(ldc));
}

enum class Sees : std::uint8_t { nothing, some, everything };

Sees what_is_seen(std::span<const Place> queries, std::span<const Place> keys, bool causal) {
  const auto by_document = [](Place a, Place b) { return a.document < b.document; };
  const auto by_position = [](Place a, Place b) { return a.position < b.position; };
  const auto [q_low, q_high] = std::ranges::minmax(queries, by_document);
  const auto [k_low, k_high] = std::ranges::minmax(keys, by_document);
  if (q_high.document < k_low.document || k_high.document < q_low.document || k_high.document < 0) return Sees::nothing;
  if (causal && std::ranges::min(keys, by_position).position > std::ranges::max(queries, by_position).position)
    return Sees::nothing;
  const bool one_document = q_low.document == q_high.document && k_low.document == k_high.document && k_low.document >= 0;
  const bool all_before =
      !causal || std::ranges::max(keys, by_position).position <= std::ranges::min(queries, by_position).position;
  return one_document && all_before ? Sees::everything : Sees::some;
}

template <typename T>
HeadRows<T> part(HeadRows<T> rows, std::size_t first, std::size_t count) {
  return {rows.data + first * rows.stride, rows.stride, rows.places.subspan(first, count)};
}

// Calls body(query block, key block, what is seen) for all pairs of which anything is.
template <typename T, typename Body>
void for_each_pair(HeadRows<const T> q, HeadRows<const T> k, bool causal, Body&& body) {
  for (std::size_t i = 0; i < q.count(); i += kQueries)
    for (std::size_t j = 0; j < k.count(); j += kKeys) {
      const std::size_t rows = std::min(kQueries, q.count() - i), columns = std::min(kKeys, k.count() - j);
      const Sees seen = what_is_seen(q.places.subspan(i, rows), k.places.subspan(j, columns), causal);
      if (seen != Sees::nothing) body(i, rows, j, columns, seen);
    }
}

// Scores of a block; what is not seen scores -infinity.
template <typename T>
void score(HeadRows<const T> q, HeadRows<const T> k, std::size_t head, bool causal, Sees seen, std::vector<T>& scores) {
  const std::size_t columns = k.count();
  product(false, true, q.count(), columns, head, 1 / std::sqrt(static_cast<T>(head)), q.data, q.stride, k.data, k.stride, T{0},
          scores.data(), columns);
  if (seen == Sees::everything) return;
  for (std::size_t i = 0; i < q.count(); ++i)
    for (std::size_t j = 0; j < columns; ++j)
      if (!is_visible(k.places[j], q.places[i], causal)) scores[i * columns + j] = kNothing<T>;
}

}  // namespace

template <typename T>
void HeadAttention<T>::add_keys(HeadRows<const T> q, HeadRows<const T> k, HeadRows<const T> v, HeadRows<T> out,
                                std::span<T> lse) const {
  std::vector<T> scores(kQueries * kKeys);
  for_each_pair(q, k, causal, [&](std::size_t i, std::size_t rows, std::size_t j, std::size_t columns, Sees seen) {
    score(part(q, i, rows), part(k, j, columns), head, causal, seen, scores);
    // out = out e^(lse - new) + sum of e^(score - new) v: scale what is there, then add.
    for (std::size_t r = 0; r < rows; ++r) {
      const std::span<T> row = std::span(scores).subspan(r * columns, columns);
      const T highest = std::ranges::max(row);
      if (highest == kNothing<T>) {
        std::ranges::fill(row, T{0});
        continue;
      }
      const T top = std::max(highest, lse[i + r]);
      T sum = std::exp(lse[i + r] - top);  // of a first block: e^-infinity = 0
      for (const T each : row) sum += std::exp(each - top);
      const T total = top + std::log(sum), kept = std::exp(lse[i + r] - total);
      T* const mean = out.data + (i + r) * out.stride;
      for (std::size_t d = 0; d < head; ++d) mean[d] *= kept;
      for (T& each : row) each = std::exp(each - total);
      lse[i + r] = total;
    }
    product(false, false, rows, head, columns, T{1}, scores.data(), columns, v.data + j * v.stride, v.stride, T{1},
            out.data + i * out.stride, out.stride);
  });
}

template <typename T>
void HeadAttention<T>::add_gradients(HeadRows<const T> q, HeadRows<const T> k, HeadRows<const T> v, HeadRows<const T> dout,
                                     std::span<const T> lse, std::span<const T> delta, HeadRows<T> dq, HeadRows<T> dk,
                                     HeadRows<T> dv) const {
  std::vector<T> weights(kQueries * kKeys), flowing(kQueries * kKeys);
  const T scale = 1 / std::sqrt(static_cast<T>(head));
  for_each_pair(q, k, causal, [&](std::size_t i, std::size_t rows, std::size_t j, std::size_t columns, Sees seen) {
    score(part(q, i, rows), part(k, j, columns), head, causal, seen, weights);
    for (std::size_t r = 0; r < rows; ++r)
      for (T& each : std::span(weights).subspan(r * columns, columns))
        each = each == kNothing<T> ? T{0} : std::exp(each - lse[i + r]);
    const T* const flows = dout.data + i * dout.stride;
    product(true, false, columns, head, rows, T{1}, weights.data(), columns, flows, dout.stride, T{1}, dv.data + j * dv.stride,
            dv.stride);
    product(false, true, rows, columns, head, T{1}, flows, dout.stride, v.data + j * v.stride, v.stride, T{0}, flowing.data(),
            columns);
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0; c < columns; ++c)
        flowing[r * columns + c] = weights[r * columns + c] * (flowing[r * columns + c] - delta[i + r]);
    product(false, false, rows, head, columns, scale, flowing.data(), columns, k.data + j * k.stride, k.stride, T{1},
            dq.data + i * dq.stride, dq.stride);
    product(true, false, columns, head, rows, scale, flowing.data(), columns, q.data + i * q.stride, q.stride, T{1},
            dk.data + j * dk.stride, dk.stride);
  });
}

template <typename T>
void HeadAttention<T>::row_products(HeadRows<const T> dout, HeadRows<const T> out, std::span<T> delta) const {
  for (std::size_t i = 0; i < delta.size(); ++i) {
    double sum = 0;
    for (std::size_t d = 0; d < head; ++d)
      sum += static_cast<double>(dout.data[i * dout.stride + d]) * static_cast<double>(out.data[i * out.stride + d]);
    delta[i] = static_cast<T>(sum);
  }
}

template <typename T>
void merge_attention(std::span<T> out, T& lse, std::span<const T> other_out, T other_lse) {
  if (other_lse == kNothing<T>) return;
  const T top = std::max(lse, other_lse);
  const T total = top + std::log(std::exp(lse - top) + std::exp(other_lse - top));
  const T mine = std::exp(lse - total), theirs = std::exp(other_lse - total);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = out[i] * mine + other_out[i] * theirs;
  lse = total;
}

template struct HeadAttention<float>;
template struct HeadAttention<double>;
template void merge_attention(std::span<float>, float&, std::span<const float>, float);
template void merge_attention(std::span<double>, double&, std::span<const double>, double);

}  // namespace shoal::train
