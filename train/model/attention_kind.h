// SPDX-License-Identifier: Apache-2.0
// Attention over sequences, seen from a block: where the other tokens of a sequence are is this interface's secret. Rows are
// (sequences, tokens) of this rank. For float, and for double in tests. Not thread-safe.
#pragma once

#include <cstddef>
#include <span>

#include "train/nn/attention.h"

namespace shoal::train {

struct AttentionSize {
  std::size_t sequences = 0;
  std::span<const Place> places;  // of this rank's tokens of a sequence
  std::size_t heads = 0;          // of this rank
  std::size_t head = 0;           // values of a vector

  std::size_t tokens() const { return places.size(); }
  std::size_t rows() const { return sequences * tokens(); }
  std::size_t width() const { return heads * head; }
};

template <typename T>
class BasicAttention {
 public:
  virtual ~BasicAttention() = default;

  // [values] that backward wants kept.
  virtual std::size_t stash_size(const AttentionSize& size) const = 0;
  // qkv: (rows, 3, heads, head); out: (rows, heads, head).
  virtual void forward(const AttentionSize& size, std::span<const T> qkv, std::span<T> out, std::span<T> stash) = 0;
  // Overwrites dqkv.
  virtual void backward(const AttentionSize& size, std::span<const T> qkv, std::span<const T> out, std::span<const T> stash,
                        std::span<const T> dout, std::span<T> dqkv) = 0;

  virtual std::size_t working_bytes() const { return 0; }  // that it keeps for itself between calls
};
using Attention = BasicAttention<float>;

// All tokens of a sequence are here. The stash is the log-sum-exp: (sequences, heads, tokens).
template <typename T>
class BasicLocalAttention final : public BasicAttention<T> {
 public:
  explicit BasicLocalAttention(bool causal = true) : causal_(causal) {}
  std::size_t stash_size(const AttentionSize& size) const override { return size.rows() * size.heads; }
  void forward(const AttentionSize& size, std::span<const T> qkv, std::span<T> out, std::span<T> stash) override;
  void backward(const AttentionSize& size, std::span<const T> qkv, std::span<const T> out, std::span<const T> stash,
                std::span<const T> dout, std::span<T> dqkv) override;

 private:
  bool causal_;
};
using LocalAttention = BasicLocalAttention<float>;

// The vectors of head `h` of sequence `s` in an array (rows, parts, heads, head): of qkv, parts 0, 1, 2 are q, k, v. `places`: of
// the array's tokens, which need not be this rank's.
template <typename T>
HeadRows<T> head_rows(const AttentionSize& size, std::span<const Place> places, std::span<T> array, std::size_t parts,
                      std::size_t part, std::size_t s, std::size_t h) {
  const std::size_t stride = parts * size.width();
  return {array.data() + s * places.size() * stride + part * size.width() + h * size.head, stride, places};
}

// One value a query: of head `h` of sequence `s` in an array (sequences, heads, tokens).
template <typename T>
std::span<T> head_values(const AttentionSize& size, std::span<T> array, std::size_t s, std::size_t h) {
  return array.subspan((s * size.heads + h) * size.tokens(), size.tokens());
}

}  // namespace shoal::train
