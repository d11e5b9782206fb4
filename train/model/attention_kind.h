// SPDX-License-Identifier: Apache-2.0
// Attention over sequences, seen from a block: where the other tokens of a sequence are is this interface's secret. Rows are
// (sequences, tokens) of this rank. Not thread-safe.
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

class Attention {
 public:
  virtual ~Attention() = default;

  // [floats] that backward wants kept.
  virtual std::size_t stash_size(const AttentionSize& size) const = 0;
  // qkv: (rows, 3, heads, head); out: (rows, heads, head).
  virtual void forward(const AttentionSize& size, std::span<const float> qkv, std::span<float> out, std::span<float> stash) = 0;
  // Overwrites dqkv.
  virtual void backward(const AttentionSize& size, std::span<const float> qkv, std::span<const float> out,
                        std::span<const float> stash, std::span<const float> dout, std::span<float> dqkv) = 0;
};

// All tokens of a sequence are here. The stash is the log-sum-exp: (sequences, heads, tokens).
class LocalAttention final : public Attention {
 public:
  explicit LocalAttention(bool causal = true) : causal_(causal) {}
  std::size_t stash_size(const AttentionSize& size) const override { return size.rows() * size.heads; }
  void forward(const AttentionSize& size, std::span<const float> qkv, std::span<float> out, std::span<float> stash) override;
  void backward(const AttentionSize& size, std::span<const float> qkv, std::span<const float> out, std::span<const float> stash,
                std::span<const float> dout, std::span<float> dqkv) override;

 private:
  bool causal_;
};

}  // namespace shoal::train
