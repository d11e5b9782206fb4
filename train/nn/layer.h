// SPDX-License-Identifier: Apache-2.0
// What a layer is: a function from (samples, input_size) to (samples, output_size) with parameters of its own, and its
// derivative. Activations are row-major float32, one row a sample; images are (row, column, channel). A layer keeps no
// activations: the network owns them and hands them in. One thread at a time.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "train/nn/block_sum.h"
#include "train/nn/tensor.h"

namespace shoal::train {

class Layer {
 public:
  virtual ~Layer() = default;

  virtual std::size_t input_size() const = 0;   // values a sample
  virtual std::size_t output_size() const = 0;  // values a sample

  // The layer's tensors in registration order, and where the network placed them: consecutive, in the same order.
  virtual std::vector<TensorSpec> tensors() const = 0;
  virtual void bind(std::span<float> values, std::span<float> gradients) = 0;

  virtual void forward(std::size_t samples, std::span<const float> input, std::span<float> output) = 0;

  struct Pass {  // what a forward pass saw and what flows back into it; each (samples, size)
    std::span<const float> input;
    std::span<const float> output;
    std::span<const float> output_gradient;
  };
  // Adds the parameters' gradients, block of samples by block (block_sum.h), to the bound gradients, and overwrites
  // input_gradient, unless that is empty: nobody asks for the derivative by the images.
  virtual void backward(std::size_t samples, const Pass& pass, std::span<float> input_gradient) = 0;
};

// The rows [first, first + count) of a (samples, size) array.
template <typename T>
std::span<T> rows(std::span<T> array, std::size_t size, std::size_t first, std::size_t count) {
  return array.subspan(first * size, count * size);
}

}  // namespace shoal::train
