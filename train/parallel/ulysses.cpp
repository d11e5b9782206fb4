// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/ulysses.h"

#include <algorithm>
#include <utility>

namespace shoal::train {
namespace {

// [values] of what every rank's heads have in an array (rows, parts, heads, head).
std::vector<std::size_t> sizes_by_heads(const AttentionSize& size, std::size_t parts, std::size_t world) {
  std::vector<std::size_t> sizes;
  for (std::size_t rank = 0; rank < world; ++rank)
    sizes.push_back(size.rows() * parts * heads_of(size.heads, {rank, world}) * size.head);
  return sizes;
}

}  // namespace

template <typename T>
UlyssesAttention<T>::UlyssesAttention(Exchange<T>& exchange, BasicAttention<T>& inner, std::vector<Place> places)
    : exchange_(exchange), inner_(inner), places_(std::move(places)) {}

template <typename T>
AttentionSize UlyssesAttention<T>::exchanged(const AttentionSize& size) const {
  return {.sequences = size.sequences, .places = places_, .heads = heads_of(size.heads, exchange_.seat()), .head = size.head};
}

template <typename T>
std::size_t UlyssesAttention<T>::stash_size(const AttentionSize& size) const {
  const AttentionSize all = exchanged(size);
  return 4 * all.rows() * all.width() + inner_.stash_size(all);
}

template <typename T>
void UlyssesAttention<T>::to_heads(const AttentionSize& size, std::size_t parts, std::span<const T> mine, std::span<T> all) {
  const std::size_t world = exchange_.seat().world, width = exchanged(size).width();
  // To each rank (rows, parts, its heads, head), ...
  sent_.resize(mine.size());
  auto to = sent_.begin();
  for (std::size_t rank = 0, first = 0; rank < world; ++rank) {
    const std::size_t its_width = heads_of(size.heads, {rank, world}) * size.head;
    for (std::size_t row = 0; row < size.rows() * parts; ++row)
      to = std::ranges::copy(mine.subspan(row * size.width() + first, its_width), to).out;
    first += its_width;
  }
  received_.resize(all.size());
  const std::vector<std::size_t> from_each(world, size.rows() * parts * width);
  exchange_.all_to_all(sent_, sizes_by_heads(size, parts, world), received_, from_each);
  // ... from each (sequences, its tokens, ...): a sequence's tokens belong together.
  const std::size_t run = size.tokens() * parts * width;
  for (std::size_t rank = 0; rank < world; ++rank)
    for (std::size_t s = 0; s < size.sequences; ++s)
      std::ranges::copy(std::span(received_).subspan((rank * size.sequences + s) * run, run),
                        all.begin() + static_cast<std::ptrdiff_t>((s * world + rank) * run));
}

template <typename T>
void UlyssesAttention<T>::to_tokens(const AttentionSize& size, std::size_t parts, std::span<const T> all, std::span<T> mine) {
  const std::size_t world = exchange_.seat().world, width = exchanged(size).width();
  const std::size_t run = size.tokens() * parts * width;
  sent_.resize(all.size());
  for (std::size_t rank = 0; rank < world; ++rank)
    for (std::size_t s = 0; s < size.sequences; ++s)
      std::ranges::copy(all.subspan((s * world + rank) * run, run),
                        sent_.begin() + static_cast<std::ptrdiff_t>((rank * size.sequences + s) * run));
  received_.resize(mine.size());
  const std::vector<std::size_t> to_each(world, size.rows() * parts * width);
  exchange_.all_to_all(sent_, to_each, received_, sizes_by_heads(size, parts, world));
  std::size_t at = 0;
  for (std::size_t rank = 0, first = 0; rank < world; ++rank) {
    const std::size_t its_width = heads_of(size.heads, {rank, world}) * size.head;
    for (std::size_t row = 0; row < size.rows() * parts; ++row) {
      std::ranges::copy(std::span(received_).subspan(std::exchange(at, at + its_width), its_width),
                        mine.begin() + static_cast<std::ptrdiff_t>(row * size.width() + first));
    }
    first += its_width;
  }
}

template <typename T>
void UlyssesAttention<T>::forward(const AttentionSize& size, std::span<const T> qkv, std::span<T> out, std::span<T> stash) {
  const AttentionSize all = exchanged(size);
  const std::size_t values = all.rows() * all.width();
  const auto all_qkv = stash.first(3 * values), all_out = stash.subspan(3 * values, values);
  to_heads(size, 3, qkv, all_qkv);
  inner_.forward(all, all_qkv, all_out, stash.subspan(4 * values));
  to_tokens(size, 1, all_out, out);
}

template <typename T>
void UlyssesAttention<T>::backward(const AttentionSize& size, std::span<const T>, std::span<const T>, std::span<const T> stash,
                                   std::span<const T> dout, std::span<T> dqkv) {
  const AttentionSize all = exchanged(size);
  const std::size_t values = all.rows() * all.width();
  flowing_.resize(4 * values);
  const auto all_dqkv = std::span(flowing_).first(3 * values), all_dout = std::span(flowing_).subspan(3 * values);
  to_heads(size, 1, dout, all_dout);
  inner_.backward(all, stash.first(3 * values), stash.subspan(3 * values, values), stash.subspan(4 * values), all_dout, all_dqkv);
  to_tokens(size, 3, all_dqkv, dqkv);
}

template class UlyssesAttention<float>;
template class UlyssesAttention<double>;

}  // namespace shoal::train
