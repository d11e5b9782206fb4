// SPDX-License-Identifier: Apache-2.0
// Gradient buckets: what is all-reduced in one call. Tensors are packed in reverse registration order, the order in which
// backward finishes them; a bucket closes before the tensor that would lift it above its cap, so that only a tensor larger than
// the cap makes a larger bucket. The first bucket's cap is smaller: its all-reduce starts early. As the arena is in registration
// order, every bucket is one contiguous piece of it, and bucket k + 1 ends where bucket k begins. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "train/nn/tensor.h"

namespace shoal::train {

struct Bucket {
  std::size_t begin = 0;  // [elements] in the arena
  std::size_t end = 0;

  std::size_t count() const { return end - begin; }
  friend bool operator==(const Bucket&, const Bucket&) = default;
};

struct BucketCaps {
  std::size_t first = std::size_t{1} << 20;  // [bytes]
  std::size_t other = std::size_t{25} << 20;
};

std::vector<Bucket> make_buckets(std::span<const Tensor> tensors, BucketCaps caps);

}  // namespace shoal::train
