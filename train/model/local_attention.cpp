// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <vector>

#include "train/model/attention_kind.h"

namespace shoal::train {
namespace {

// The vectors of head `h` of sequence `s` in an array of `parts` times (heads, head) values a row; part 0, 1, 2: q, k, v.
template <typename T>
HeadRows<T> head_of(const AttentionSize& size, std::span<T> array, std::size_t parts, std::size_t part, std::size_t s,
                    std::size_t h) {
  const std::size_t stride = parts * size.width();
  return {array.data() + s * size.tokens() * stride + part * size.width() + h * size.head, stride, size.places};
}

}  // namespace

void LocalAttention::forward(const AttentionSize& size, std::span<const float> qkv, std::span<float> out,
                             std::span<float> stash) {
  const HeadAttention<float> attention{size.head, causal_};
  std::ranges::fill(out, 0.0F);
  std::ranges::fill(stash, -std::numeric_limits<float>::infinity());
  for (std::size_t s = 0; s < size.sequences; ++s)
    for (std::size_t h = 0; h < size.heads; ++h)
      attention.add_keys(head_of(size, qkv, 3, 0, s, h), head_of(size, qkv, 3, 1, s, h), head_of(size, qkv, 3, 2, s, h),
                         head_of(size, out, 1, 0, s, h), stash.subspan((s * size.heads + h) * size.tokens(), size.tokens()));
}

void LocalAttention::backward(const AttentionSize& size, std::span<const float> qkv, std::span<const float> out,
                              std::span<const float> stash, std::span<const float> dout, std::span<float> dqkv) {
  const HeadAttention<float> attention{size.head, causal_};
  std::ranges::fill(dqkv, 0.0F);
  std::vector<float> delta(size.tokens());
  for (std::size_t s = 0; s < size.sequences; ++s)
    for (std::size_t h = 0; h < size.heads; ++h) {
      const auto flowing = head_of(size, dout, 1, 0, s, h);
      attention.row_products(flowing, head_of(size, out, 1, 0, s, h), delta);
      attention.add_gradients(head_of(size, qkv, 3, 0, s, h), head_of(size, qkv, 3, 1, s, h), head_of(size, qkv, 3, 2, s, h),
                              flowing, stash.subspan((s * size.heads + h) * size.tokens(), size.tokens()), delta,
                              head_of(size, dqkv, 3, 0, s, h), head_of(size, dqkv, 3, 1, s, h), head_of(size, dqkv, 3, 2, s, h));
    }
}

}  // namespace shoal::train
