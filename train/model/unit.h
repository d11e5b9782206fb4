// SPDX-License-Identifier: Apache-2.0
// A unit of a model: what is computed, stored, sharded and placed as a whole. The units of a transformer are its embedding, its
// blocks and its head. A unit keeps no activations: whoever runs it hands in its input and a stash, so that several micro-batches
// can be under way. Backward comes in two halves: by the input, for which the unit below waits, and by the parameters.
// Activations are (rows, width), row-major; "mine" and "whole" rows as in tensor_group.h. One thread at a time.
#pragma once

#include <span>
#include <vector>

#include "train/model/token_batch.h"
#include "train/nn/tensor.h"

namespace shoal::train {

class Unit {
 public:
  virtual ~Unit() = default;

  // This rank's part of each tensor, in the order in which bind's spans hold them.
  virtual std::vector<TensorSpec> tensors() const = 0;
  // Where the parameters and their gradients are from now on.
  virtual void bind(std::span<float> values, std::span<float> gradients) = 0;

  // [floats] from the beginning of forward to the end of backward_parameters.
  virtual std::size_t stash_size(const TokenBatch& batch) const = 0;
  // [floats] of it that forward fills: the activations. The rest is backward's working memory.
  virtual std::size_t kept_size(const TokenBatch& batch) const { return stash_size(batch); }

  // x, y: my rows; the first unit has no x, the last no y (both empty).
  virtual void forward(const TokenBatch& batch, std::span<const float> x, std::span<float> y, std::span<float> stash) = 0;
  // Overwrites dx (empty for the first unit); adds some parameters' gradients. dy may be overwritten.
  virtual void backward_input(const TokenBatch& batch, std::span<const float> x, std::span<float> dy, std::span<float> dx,
                              std::span<float> stash) = 0;
  // After backward_input of the same batch: adds the remaining gradients, and needs x and dy no more.
  virtual void backward_parameters(const TokenBatch& batch, std::span<float> stash) = 0;
};

}  // namespace shoal::train
