// SPDX-License-Identifier: Apache-2.0
// What the units of a model ask of the ranks that share their matrices (Megatron-LM, Shoeybi et al. 2019; with sequence
// parallelism: Korthikanti et al. 2022). Between split matrices every rank has the *whole* rows of activations; in the regions
// between (norms, residuals) it has *mine*: all rows too, or with sequence parallelism its share of them. Entering and leaving
// the split region are conjugate: the derivative of one is the other's kind of communication.
#pragma once

#include <cstddef>
#include <span>

namespace shoal::train {

class TensorGroup {
 public:
  virtual ~TensorGroup() = default;

  virtual std::size_t rank() const { return 0; }
  virtual std::size_t world() const { return 1; }
  // Of `whole` rows, those that are mine: [first_row, first_row + rows).
  virtual std::size_t my_rows(std::size_t whole) const { return whole; }
  virtual std::size_t my_first_row(std::size_t) const { return 0; }

  // All arrays are (rows, width), row-major. Each returns where the result is: in `mine` or `whole` itself, if there was nothing
  // to do, or in `room`, which has the size of the result. The argument may be overwritten.

  // Before a matrix split by columns: identity, or all-gather of the rows.
  virtual std::span<float> enter(std::span<float> mine, std::span<float> /*room*/) { return mine; }
  // Its derivative: all-reduce, or reduce-scatter, of the partial gradients of the whole rows.
  virtual std::span<float> enter_backward(std::span<float> whole, std::span<float> /*room*/) { return whole; }
  // After a matrix split by rows: all-reduce, or reduce-scatter, of partial sums.
  virtual std::span<float> leave(std::span<float> whole, std::span<float> /*room*/) { return whole; }
  // Its derivative: identity, or all-gather.
  virtual std::span<float> leave_backward(std::span<float> mine, std::span<float> /*room*/) { return mine; }

  // In place, over the ranks that share the matrices: for what a split vocabulary needs to know of the other parts.
  virtual void all_reduce_max(std::span<float>) {}
  virtual void all_reduce_sum(std::span<float>) {}
};

}  // namespace shoal::train
