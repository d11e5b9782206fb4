// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <vector>

#include "train/model/attention_kind.h"

namespace shoal::train {

template <typename T>
void BasicLocalAttention<T>::forward(const AttentionSize& size, std::span<const T> qkv, std::span<T> out, std::span<T> stash) {
  const HeadAttention<T> attention{size.head, causal_};
  const auto rows = [&](auto array, std::size_t parts, std::size_t part, std::size_t s, std::size_t h) {
    return head_rows(size, size.places, array, parts, part, s, h);
  };
  std::ranges::fill(out, T{0});
  std::ranges::fill(stash, -std::numeric_limits<T>::infinity());
  for (std::size_t s = 0; s < size.sequences; ++s)
    for (std::size_t h = 0; h < size.heads; ++h)
      attention.add_keys(rows(qkv, 3, 0, s, h), rows(qkv, 3, 1, s, h), rows(qkv, 3, 2, s, h), rows(out, 1, 0, s, h),
                         head_values(size, stash, s, h));
}

template <typename T>
void BasicLocalAttention<T>::backward(const AttentionSize& size, std::span<const T> qkv, std::span<const T> out,
                                      std::span<const T> stash, std::span<const T> dout, std::span<T> dqkv) {
  const HeadAttention<T> attention{size.head, causal_};
  const auto rows = [&](auto array, std::size_t parts, std::size_t part, std::size_t s, std::size_t h) {
    return head_rows(size, size.places, array, parts, part, s, h);
  };
  std::ranges::fill(dqkv, T{0});
  std::vector<T> delta(size.tokens());
  for (std::size_t s = 0; s < size.sequences; ++s)
    for (std::size_t h = 0; h < size.heads; ++h) {
      const auto flowing = rows(dout, 1, 0, s, h);
      attention.row_products(flowing, rows(out, 1, 0, s, h), delta);
      attention.add_gradients(rows(qkv, 3, 0, s, h), rows(qkv, 3, 1, s, h), rows(qkv, 3, 2, s, h), flowing,
                              head_values(size, stash, s, h), delta, rows(dqkv, 3, 0, s, h), rows(dqkv, 3, 1, s, h),
                              rows(dqkv, 3, 2, s, h));
    }
}

template class BasicLocalAttention<float>;
template class BasicLocalAttention<double>;

}  // namespace shoal::train
