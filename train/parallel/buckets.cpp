// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/buckets.h"

namespace shoal::train {

std::vector<Bucket> make_buckets(std::span<const Tensor> tensors, BucketCaps caps) {
  std::vector<Bucket> buckets;
  for (std::size_t t = tensors.size(); t-- > 0;) {
    const Tensor& tensor = tensors[t];
    const std::size_t end = tensor.offset + tensor.count;
    const std::size_t cap = buckets.size() <= 1 ? caps.first : caps.other;
    if (buckets.empty() || (buckets.back().end - tensor.offset) * sizeof(float) > cap)
      buckets.push_back({.begin = end, .end = end});
    buckets.back().begin = tensor.offset;
  }
  return buckets;
}

}  // namespace shoal::train
