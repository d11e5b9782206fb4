// SPDX-License-Identifier: Apache-2.0
// Tensor parallelism over a communicator: the ranks that share the matrices of a model (model/tensor_group.h). As all-reduces,
// every rank has all rows of activations everywhere; with sequence parallelism an all-reduce is taken apart into a reduce-scatter
// and an all-gather, between which each rank has its share of the rows: the same volume, less memory.
#pragma once

#include "train/model/tensor_group.h"
#include "train/parallel/comm.h"

namespace shoal::train {

class TensorParallel final : public TensorGroup {
 public:
  // `comm` outlives this.
  TensorParallel(const Communicator& comm, bool sequence_parallel) : comm_(comm), sequence_parallel_(sequence_parallel) {}

  std::size_t rank() const override { return comm_.seat().rank; }
  std::size_t world() const override { return comm_.seat().world; }
  std::size_t my_rows(std::size_t whole) const override { return sequence_parallel_ ? whole / world() : whole; }
  std::size_t my_first_row(std::size_t whole) const override { return sequence_parallel_ ? rank() * my_rows(whole) : 0; }

  std::span<float> enter(std::span<float> mine, std::span<float> room) override { return gather(mine, room); }
  std::span<float> enter_backward(std::span<float> whole, std::span<float> room) override { return sum(whole, room); }
  std::span<float> leave(std::span<float> whole, std::span<float> room) override { return sum(whole, room); }
  std::span<float> leave_backward(std::span<float> mine, std::span<float> room) override { return gather(mine, room); }

  void all_reduce_max(std::span<float> values) override { comm_.all_reduce(values, Over::max); }
  void all_reduce_sum(std::span<float> values) override { comm_.all_reduce(values); }

 private:
  std::span<float> gather(std::span<float> mine, std::span<float> room) const;
  std::span<float> sum(std::span<float> whole, std::span<float> room) const;

  const Communicator& comm_;
  bool sequence_parallel_;
};

}  // namespace shoal::train
