// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/ring_attention.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "train/parallel/sequence_layout.h"

namespace shoal::train {
namespace {

template <typename Body>
void for_each_head(const AttentionSize& size, Body&& body) {
  for (std::size_t s = 0; s < size.sequences; ++s)
    for (std::size_t h = 0; h < size.heads; ++h) body(s, h);
}

}  // namespace

template <typename T>
RingAttention<T>::RingAttention(Exchange<T>& exchange, std::vector<std::vector<Place>> places, bool causal)
    : exchange_(exchange), places_(std::move(places)), causal_(causal) {}

template <typename T>
std::size_t RingAttention<T>::working_bytes() const {
  return sizeof(T) * (keys_.size() + keys_arriving_.size() + gradients_.size() + gradients_arriving_.size() + mine_.size());
}

template <typename T>
bool RingAttention<T>::sees(const AttentionSize& size, std::size_t of) const {
  return visible_pairs(size.places, places_[of], causal_) > 0;
}

template <typename T>
void RingAttention<T>::take_keys(const AttentionSize& size, std::span<const T> qkv) {
  const std::size_t width = size.width();
  keys_.resize(size.rows() * 2 * width);
  keys_arriving_.resize(exchange_.seat().world > 1 ? keys_.size() : 0);
  for (std::size_t row = 0; row < size.rows(); ++row)
    std::ranges::copy(qkv.subspan((3 * row + 1) * width, 2 * width),
                      keys_.begin() + static_cast<std::ptrdiff_t>(2 * row * width));
}

template <typename T>
void RingAttention<T>::forward(const AttentionSize& size, std::span<const T> qkv, std::span<T> out, std::span<T> stash) {
  const std::size_t world = exchange_.seat().world;
  const HeadAttention<T> attention{size.head, causal_};
  std::ranges::fill(out, T{0});
  std::ranges::fill(stash, -std::numeric_limits<T>::infinity());
  take_keys(size, qkv);
  blocks_computed_ = 0;
  for (std::size_t hop = 0; hop < world; ++hop) {
    const bool last = hop + 1 == world;
    if (!last) exchange_.pass(keys_, keys_arriving_);
    if (sees(size, owner(hop))) {
      ++blocks_computed_;
      const std::span<const Place> theirs = places_[owner(hop)];
      const std::span<const T> keys = keys_;
      for_each_head(size, [&](std::size_t s, std::size_t h) {
        attention.add_keys(head_rows(size, size.places, qkv, 3, 0, s, h), head_rows(size, theirs, keys, 2, 0, s, h),
                           head_rows(size, theirs, keys, 2, 1, s, h), head_rows(size, size.places, out, 1, 0, s, h),
                           head_values(size, stash, s, h));
      });
    }
    if (last) continue;
    exchange_.wait();
    std::swap(keys_, keys_arriving_);
  }
}

template <typename T>
void RingAttention<T>::backward(const AttentionSize& size, std::span<const T> qkv, std::span<const T> out,
                                std::span<const T> stash, std::span<const T> dout, std::span<T> dqkv) {
  const std::size_t world = exchange_.seat().world, width = size.width();
  const HeadAttention<T> attention{size.head, causal_};
  std::ranges::fill(dqkv, T{0});
  std::vector<T> deltas(stash.size());
  for_each_head(size, [&](std::size_t s, std::size_t h) {
    attention.row_products(head_rows(size, size.places, dout, 1, 0, s, h), head_rows(size, size.places, out, 1, 0, s, h),
                           head_values(size, std::span(deltas), s, h));
  });
  take_keys(size, qkv);
  for (std::vector<T>* each : {&gradients_, &mine_}) each->assign(keys_.size(), T{0});
  gradients_arriving_.resize(keys_arriving_.size());
  blocks_computed_ = 0;
  for (std::size_t hop = 0; hop < world; ++hop) {
    // While this rank computes what it adds to the gradients of the block that is here, their sum so far arrives.
    if (hop + 1 < world) exchange_.pass(keys_, keys_arriving_);
    if (hop > 0) exchange_.pass(gradients_, gradients_arriving_);
    const bool seen = sees(size, owner(hop));
    if (seen) {
      ++blocks_computed_;
      const std::span<const Place> theirs = places_[owner(hop)];
      const std::span<const T> keys = keys_;
      std::ranges::fill(mine_, T{0});
      for_each_head(size, [&](std::size_t s, std::size_t h) {
        attention.add_gradients(head_rows(size, size.places, qkv, 3, 0, s, h), head_rows(size, theirs, keys, 2, 0, s, h),
                                head_rows(size, theirs, keys, 2, 1, s, h), head_rows(size, size.places, dout, 1, 0, s, h),
                                head_values(size, stash, s, h), head_values(size, std::span<const T>(deltas), s, h),
                                head_rows(size, size.places, dqkv, 3, 0, s, h),
                                head_rows(size, theirs, std::span(mine_), 2, 0, s, h),
                                head_rows(size, theirs, std::span(mine_), 2, 1, s, h));
      });
    }
    if (world > 1) exchange_.wait();
    if (hop > 0) std::swap(gradients_, gradients_arriving_);
    if (hop + 1 < world) std::swap(keys_, keys_arriving_);
    if (seen)
      for (std::size_t i = 0; i < mine_.size(); ++i) gradients_[i] += mine_[i];
  }
  if (world > 1) {  // what is here belongs to the next rank
    exchange_.pass(gradients_, gradients_arriving_);
    exchange_.wait();
    std::swap(gradients_, gradients_arriving_);
  }
  for (std::size_t row = 0; row < size.rows(); ++row)
    std::ranges::copy(std::span(gradients_).subspan(2 * row * width, 2 * width),
                      dqkv.begin() + static_cast<std::ptrdiff_t>((3 * row + 1) * width));
}

template class RingAttention<float>;
template class RingAttention<double>;

}  // namespace shoal::train
