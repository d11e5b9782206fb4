// SPDX-License-Identifier: Apache-2.0
// Attention by exchanging heads for tokens (DeepSpeed Ulysses, Jacobs et al. 2023): each of P ranks has N/P tokens of all heads;
// an all-to-all gives it all N tokens of its heads, any attention works on those, and an all-to-all brings the result back.
// Forward, a rank sends 4 (N/P) h (P-1)/P values (q, k, v and out; h = heads x head), backward as many: constant when N and P
// grow together. Heads that do not divide are spread as evenly as they go, the first ranks one more; a rank without a head only
// sends. With ring attention inside, over the ranks of the same column of all groups, this is 2D attention (LongVILA, Chen et al.
// 2024).
#pragma once

#include <vector>

#include "train/model/attention_kind.h"
#include "train/parallel/exchange.h"

namespace shoal::train {

// Heads of a rank.
constexpr std::size_t heads_of(std::size_t heads, Seat seat) {
  return heads / seat.world + (seat.rank < heads % seat.world ? 1 : 0);
}

template <typename T>
class UlyssesAttention final : public BasicAttention<T> {
 public:
  // `exchange`, `inner` outlive this. `places`: of the tokens of all ranks of the exchange, one rank behind the other, each as
  // many.
  UlyssesAttention(Exchange<T>& exchange, BasicAttention<T>& inner, std::vector<Place> places);

  // The exchanged q, k, v and out, and what `inner` keeps.
  std::size_t stash_size(const AttentionSize& size) const override;
  void forward(const AttentionSize& size, std::span<const T> qkv, std::span<T> out, std::span<T> stash) override;
  void backward(const AttentionSize& size, std::span<const T> qkv, std::span<const T> out, std::span<const T> stash,
                std::span<const T> dout, std::span<T> dqkv) override;
  std::size_t working_bytes() const override {
    return sizeof(T) * (sent_.capacity() + received_.capacity() + flowing_.capacity()) + inner_.working_bytes();
  }

 private:
  AttentionSize exchanged(const AttentionSize& size) const;
  // Between (rows, parts, heads, head) of my tokens and (rows, parts, my heads, head) of all.
  void to_heads(const AttentionSize& size, std::size_t parts, std::span<const T> mine, std::span<T> all);
  void to_tokens(const AttentionSize& size, std::size_t parts, std::span<const T> all, std::span<T> mine);

  Exchange<T>& exchange_;
  BasicAttention<T>& inner_;
  std::vector<Place> places_;
  std::vector<T> sent_, received_, flowing_;  // working memory of a call
};

}  // namespace shoal::train
