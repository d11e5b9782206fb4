// SPDX-License-Identifier: Apache-2.0
// A stack of layers with one arena of parameters, one of gradients, and the activations of up to `capacity` samples. Owns all of
// them. One thread at a time; what backward has declared ready may be read and reduced by others meanwhile.
#pragma once

#include <functional>
#include <memory>

#include "train/nn/gemm.h"
#include "train/nn/layer.h"

namespace shoal::train {

// A residual connection (He et al. 2016): the input of layer `from` is added to the output of layer `to`, which is as large.
struct Skip {
  std::size_t from = 0;
  std::size_t to = 0;
};

struct Layers {
  std::vector<std::unique_ptr<Layer>> layers;
  std::vector<Skip> skips = {};  // no two of one `from`, no two of one `to`
};

class Network {
 public:
  // Adjacent layers must fit. Parameters start at zero: see initialise().
  Network(Layers layers, std::size_t capacity);

  std::size_t capacity() const { return capacity_; }  // [samples]
  std::size_t input_size() const { return layers_.front()->input_size(); }
  std::size_t output_size() const { return layers_.back()->output_size(); }

  std::span<const Tensor> tensors() const { return tensors_; }
  std::span<float> values() { return values_; }
  std::span<float> gradients() { return gradients_; }

  // Where forward() reads `samples` rows from.
  std::span<float> input(std::size_t samples);
  // Returns the last layer's output, (samples, output_size), valid until the next call.
  std::span<const float> forward(std::size_t samples);

  // Called during backward: the gradients at [offset, end of the arena) are final.
  using Ready = std::function<void(std::size_t offset)>;
  // After forward of as many samples: overwrites all gradients with sums over the samples, last layer first (or, with Into::add,
  // adds them to what is there). Zero samples: zeros.
  void backward(std::size_t samples, std::span<const float> output_gradient, const Ready& ready, Into into = Into::overwrite);

 private:
  std::span<float> activations(std::size_t layer, std::size_t samples);  // the input of a layer; the output of the one before

  std::vector<std::unique_ptr<Layer>> layers_;
  std::vector<Skip> skips_;
  std::size_t capacity_;
  std::vector<Tensor> tensors_;
  std::vector<std::size_t> offsets_;  // of each layer's first parameter
  std::vector<float> values_;
  std::vector<float> gradients_;
  std::vector<std::vector<float>> activations_;   // one more than layers
  std::vector<float> flowing_in_, flowing_out_;   // gradients between layers, swapped at each
  std::vector<std::vector<float>> flowing_over_;  // gradients on their way over a skip
};

}  // namespace shoal::train
