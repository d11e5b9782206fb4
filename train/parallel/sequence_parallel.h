// SPDX-License-Identifier: Apache-2.0
// Sequence parallelism over communicators: which attention works on sequences that are split over ranks, and what else follows
// from it. The world is a grid: `columns` ranks side by side exchange heads (Ulysses), ranks of the same column of all `blocks`
// groups pass keys around (ring). One block is Ulysses alone, one column the ring alone, both more than one 2D attention.
#pragma once

#include <memory>
#include <vector>

#include "train/model/attention_kind.h"
#include "train/model/gpt_shape.h"
#include "train/parallel/comm_exchange.h"
#include "train/parallel/sequence_layout.h"
#include "train/parallel/volume.h"

namespace shoal::train {

class SequenceAttention final : public Attention {
 public:
  // `heads`: the ranks that exchange heads, ordered by column; `ring`: those that pass keys, ordered by block; both outlive this.
  // Where the layout has one column or one block, the communicator is not used and may be null. `whole`: of a sequence's tokens.
  SequenceAttention(const SequenceLayout& layout, const Communicator* heads, const Communicator* ring,
                    std::span<const Place> whole, bool causal = true);

  std::size_t stash_size(const AttentionSize& size) const override { return outer_->stash_size(size); }
  void forward(const AttentionSize& size, std::span<const float> qkv, std::span<float> out, std::span<float> stash) override {
    outer_->forward(size, qkv, out, stash);
  }
  void backward(const AttentionSize& size, std::span<const float> qkv, std::span<const float> out, std::span<const float> stash,
                std::span<const float> dout, std::span<float> dqkv) override {
    outer_->backward(size, qkv, out, stash, dout, dqkv);
  }
  std::size_t working_bytes() const override { return outer_->working_bytes(); }

  // Of keys, values and their gradients on their way round, since the beginning; none without a ring.
  CommTimes ring_times() const { return around_ring_ != nullptr ? around_ring_->times() : CommTimes{}; }

 private:
  std::unique_ptr<CommExchange> across_heads_, around_ring_;
  std::unique_ptr<Attention> inner_, ulysses_;
  Attention* outer_ = nullptr;
};

// Of a step on `sequences` sequences, all layers forward and backward, as rank `rank` of the layout sends it.
std::vector<Volume> sequence_attention_volume(const GptShape& shape, const SequenceLayout& layout, std::size_t rank,
                                              std::size_t sequences);

}  // namespace shoal::train
