// SPDX-License-Identifier: Apache-2.0
// Softmax attention of one head, block by block, so that no (tokens, tokens) matrix is ever held: scores of a block of queries by
// a block of keys, and what they add to a running result. Because partial results over disjoint sets of keys merge exactly, keys
// may come in any order and from anywhere: that is what ring attention does (Liu et al. 2023; the forward and backward formulas
// are FlashAttention's, Dao et al. 2022). Pure functions over the caller's memory, for float and double; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace shoal::train {

// Where a token stands. Tokens of different documents do not see each other; padding belongs to none, sees nothing and is not
// seen.
struct Place {
  std::int32_t document = 0;
  std::int32_t position = 0;
};
inline constexpr Place kPadding{-1, 0};

inline bool is_visible(Place key, Place query, bool causal) {
  return key.document >= 0 && key.document == query.document && (!causal || key.position <= query.position);
}

// The vectors of one head: one a token, `stride` values apart.
template <typename T>
struct HeadRows {
  T* data = nullptr;
  std::size_t stride = 0;
  std::span<const Place> places;  // one a token
  std::size_t count() const { return places.size(); }
};

// Scores are q.k / sqrt(head).
template <typename T>
struct HeadAttention {
  std::size_t head = 0;  // values of a vector
  bool causal = true;

  // Adds the keys to the running result: `out` (rows of `q`'s count) is the mean of the values seen so far, `lse` the logarithm
  // of the sum of exp(score) over them. Before the first keys: out 0, lse -infinity, which is also what a query without any
  // visible key ends with.
  void add_keys(HeadRows<const T> q, HeadRows<const T> k, HeadRows<const T> v, HeadRows<T> out, std::span<T> lse) const;

  // With the final `lse`, the gradient `dout` of the final out, and `delta` = sum over a row of dout * out: adds these keys' part
  // to dq and their own gradients to dk and dv.
  void add_gradients(HeadRows<const T> q, HeadRows<const T> k, HeadRows<const T> v, HeadRows<const T> dout,
                     std::span<const T> lse, std::span<const T> delta, HeadRows<T> dq, HeadRows<T> dk, HeadRows<T> dv) const;

  // delta[i] = sum over the i-th row of dout * out.
  void row_products(HeadRows<const T> dout, HeadRows<const T> out, std::span<T> delta) const;
};

// Merges the result over other keys into out (one vector of `head` values) and lse. -infinity is neutral.
template <typename T>
void merge_attention(std::span<T> out, T& lse, std::span<const T> other_out, T other_lse);

}  // namespace shoal::train
