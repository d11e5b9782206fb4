// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/sequence_parallel.h"

#include <algorithm>
#include <utility>

#include "train/parallel/ring_attention.h"
#include "train/parallel/ulysses.h"

namespace shoal::train {

SequenceAttention::SequenceAttention(const SequenceLayout& layout, const Communicator* heads, const Communicator* ring,
                                     std::span<const Place> whole, bool causal) {
  if (layout.blocks() > 1) {
    std::vector<std::vector<Place>> places;
    for (std::size_t block = 0; block < layout.blocks(); ++block) places.push_back(layout.block_places(block, whole));
    around_ring_ = std::make_unique<CommExchange>(*ring);
    inner_ = std::make_unique<RingAttention<float>>(*around_ring_, std::move(places), causal);
  } else {
    inner_ = std::make_unique<LocalAttention>(causal);
  }
  outer_ = inner_.get();
  if (layout.columns() == 1) return;
  const std::size_t block = layout.blocks() > 1 ? ring->seat().rank : 0;
  across_heads_ = std::make_unique<CommExchange>(*heads);
  ulysses_ = std::make_unique<UlyssesAttention<float>>(*across_heads_, *inner_, layout.block_places(block, whole));
  outer_ = ulysses_.get();
}

std::vector<Volume> sequence_attention_volume(const GptShape& shape, const SequenceLayout& layout, std::size_t rank,
                                              std::size_t sequences) {
  const std::uint64_t columns = layout.columns(), blocks = layout.blocks(), layers = shape.layers;
  const std::uint64_t my_heads = heads_of(shape.heads, {layout.column_of(rank), columns});
  const std::uint64_t vector = sequences * layout.tokens() * shape.head_size() * sizeof(float);  // of my tokens, of a head
  std::vector<Volume> all;
  if (columns > 1 && shape.heads % columns == 0) {
    const std::uint64_t bytes = 4 * vector * shape.heads * (columns - 1) / columns;
    all.push_back(
        {Moves::all_to_all, 4 * layers, 2 * layers * bytes, "a layer 4 N/P h (P-1)/P values forward, as many backward"});
  } else if (columns > 1) {
    // Forward my q, k, v of others' heads, and the result of my heads for others' tokens; backward their gradients.
    const std::uint64_t away = shape.heads - my_heads, others = columns - 1;
    const std::uint64_t receivers = std::min<std::uint64_t>(shape.heads, columns) - (my_heads > 0 ? 1 : 0);
    const std::uint64_t calls = receivers + (my_heads > 0 ? others : 0);
    all.push_back({Moves::point_to_point, 2 * calls * layers, layers * vector * 4 * (away + others * my_heads),
                   "heads that do not divide: q, k, v of others' heads, out of others' tokens"});
  }
  if (blocks > 1) {
    const std::uint64_t block = 2 * columns * vector * my_heads;  // keys and values
    const std::uint64_t hops = (blocks - 1) + (blocks - 1) + blocks;
    all.push_back({Moves::point_to_point, hops * layers, hops * layers * block,
                   "a layer 2 N/P h values in P-1 hops forward, in 2P-1 backward"});
  }
  return all;
}

}  // namespace shoal::train
