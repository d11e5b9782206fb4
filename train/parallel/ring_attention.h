// SPDX-License-Identifier: Apache-2.0
// Attention by passing keys and values around a ring (Ring Attention, Liu et al. 2023): each of P ranks keeps its queries and
// adds block after block of keys to its running result, while the next block arrives.
//
//   hop     rank 0      rank 1      rank 2      rank 3        forward: k, v of a block move P-1 hops
//    0      q0 k0 v0    q1 k1 v1    q2 k2 v2    q3 k3 v3      backward: k, v again P-1 hops; dk, dv P hops, the last one home
//    1      q0 k3 v3    q1 k0 v0    q2 k1 v1    q3 k2 v2
//    ...
//
// A rank sends 2 (P-1) (N/P) h values forward and 2 (2P-1) (N/P) h backward, and holds a few blocks of N/P tokens, whatever N is.
// Blocks of which no key is visible are passed on without being computed.
#pragma once

#include <vector>

#include "train/model/attention_kind.h"
#include "train/parallel/exchange.h"

namespace shoal::train {

template <typename T>
class RingAttention final : public BasicAttention<T> {
 public:
  // `exchange` outlives this. `places`: by rank of the exchange, of its tokens, for each as many.
  RingAttention(Exchange<T>& exchange, std::vector<std::vector<Place>> places, bool causal = true);

  // The log-sum-exp, as for local attention.
  std::size_t stash_size(const AttentionSize& size) const override { return size.rows() * size.heads; }
  void forward(const AttentionSize& size, std::span<const T> qkv, std::span<T> out, std::span<T> stash) override;
  void backward(const AttentionSize& size, std::span<const T> qkv, std::span<const T> out, std::span<const T> stash,
                std::span<const T> dout, std::span<T> dqkv) override;

  // Of the last call: blocks of keys that were computed with, at most as many as there are ranks.
  std::size_t blocks_computed() const { return blocks_computed_; }
  std::size_t working_bytes() const override;  // the travelling blocks

 private:
  // Whose keys are here at a hop.
  std::size_t owner(std::size_t hop) const {
    return (exchange_.seat().rank + exchange_.seat().world - hop) % exchange_.seat().world;
  }
  bool sees(const AttentionSize& size, std::size_t of) const;
  void take_keys(const AttentionSize& size, std::span<const T> qkv);

  Exchange<T>& exchange_;
  std::vector<std::vector<Place>> places_;
  bool causal_;
  std::size_t blocks_computed_ = 0;
  // (rows, 2, heads, head): keys and values here and arriving; their gradients so far, arriving, and what this rank adds.
  std::vector<T> keys_, keys_arriving_, gradients_, gradients_arriving_, mine_;
};

}  // namespace shoal::train
