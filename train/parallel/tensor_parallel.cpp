// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/tensor_parallel.h"

namespace shoal::train {

std::span<float> TensorParallel::gather(std::span<float> mine, std::span<float> room) const {
  if (!sequence_parallel_) return mine;
  comm_.all_gather(mine, room);
  return room;
}

std::span<float> TensorParallel::sum(std::span<float> whole, std::span<float> room) const {
  if (sequence_parallel_) {
    comm_.reduce_scatter(whole, room);
    return room;
  }
  comm_.all_reduce(whole);
  return whole;
}

}  // namespace shoal::train
