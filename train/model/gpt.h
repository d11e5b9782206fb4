// SPDX-License-Identifier: Apache-2.0
// The units of a transformer, or a run of them, and a way to run them in one place: parameters and gradients in one arena each,
// in the units' order. A driver that stores or places parameters otherwise takes make_unit alone. One thread at a time.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "train/model/attention_kind.h"
#include "train/model/gpt_shape.h"
#include "train/model/head.h"
#include "train/model/tensor_group.h"
#include "train/model/unit.h"

namespace shoal::train {

// Unit `number` of 0 (the embedding) to shape.units() - 1 (the head).
std::unique_ptr<Unit> make_unit(const GptShape& shape, std::size_t number, TensorGroup& group, Attention& attention,
                                Head::Table table);

// Units [first, last).
struct UnitRange {
  std::size_t first = 0;
  std::size_t last = 0;

  std::size_t count() const { return last - first; }
};

class Gpt {
 public:
  // What is referenced outlives this. Parameters are initialised by name. A tied head uses the embedding's table if that is here,
  // else a copy of it.
  Gpt(const GptShape& shape, UnitRange units, TensorGroup& group, Attention& attention, std::uint64_t seed);
  Gpt(const GptShape& shape, TensorGroup& group, Attention& attention, std::uint64_t seed)
      : Gpt(shape, {0, shape.units()}, group, attention, seed) {}

  const GptShape& shape() const { return shape_; }
  UnitRange range() const { return range_; }
  Unit& unit(std::size_t number) { return *units_[number - range_.first]; }
  bool has_head() const { return range_.last == shape_.units(); }
  double loss() const;  // of the head's last forward: a sum over targets

  std::span<const Tensor> tensors() const { return tensors_; }
  std::span<float> values() { return values_; }
  std::span<float> gradients() { return gradients_; }
  std::size_t offset(std::size_t unit) const {
    return offsets_[unit - range_.first];
  }  // of its first parameter, also of the last + 1

  // Called when the gradients at [offset, end of the arena) are final.
  using Ready = std::function<void(std::size_t offset)>;
  // The whole model here: forward and backward of a batch; adds to the gradients. Returns the sum of the losses.
  double forward_backward(const TokenBatch& batch, const Ready& ready = {});
  // Forward only.
  double evaluate(const TokenBatch& batch);

 private:
  void forward(const TokenBatch& batch);

  GptShape shape_;
  UnitRange range_;
  TensorGroup& group_;
  std::vector<std::unique_ptr<Unit>> units_;
  bool tied_here_ = false;
  std::vector<Tensor> tensors_;
  std::vector<std::size_t> offsets_;
  std::vector<float> values_, gradients_;
  std::vector<std::vector<float>> activations_, stashes_;  // by unit: its output; its stash
  std::vector<float> flowing_in_, flowing_out_;
};

}  // namespace shoal::train
