// SPDX-License-Identifier: Apache-2.0
// How ZeRO (Rajbhandari et al. 2020) cuts a flat space of parameters, and what a stage costs by its formulas: the bytes that a
// rank holds, the elements that it sends. Pure functions; any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "train/nn/tensor.h"
#include "train/parallel/wire_format.h"

namespace shoal::train {

// Elements [begin, end) of a flat space.
struct Extent {
  std::size_t begin = 0, end = 0;

  std::size_t count() const { return end - begin; }
  friend bool operator==(const Extent&, const Extent&) = default;
};

// `count` elements over `ranks` ranks, as many each: the space is padded to a multiple of ranks and alignment. The padding may
// fill several ranks' shards, and a shard may be empty.
struct Shards {
  std::size_t count = 0;
  std::size_t ranks = 1;
  std::size_t alignment = 1;

  std::size_t padded() const {
    const std::size_t unit = std::lcm(ranks, alignment);
    return (count + unit - 1) / unit * unit;
  }
  std::size_t each() const { return padded() / ranks; }
  Extent of(std::size_t rank) const { return {rank * each(), (rank + 1) * each()}; }
  // What of an extent is no padding.
  Extent real(Extent extent) const { return {std::min(extent.begin, count), std::min(extent.end, count)}; }
};

// What of a tensor lies in an extent of the space in which tensors are laid out.
struct TensorRun {
  std::size_t tensor = 0;  // its index
  std::size_t first = 0;   // element of the tensor
  std::size_t at = 0;      // element of the space
  std::size_t count = 0;   // above 0

  friend bool operator==(const TensorRun&, const TensorRun&) = default;
};
inline std::vector<TensorRun> runs_in(std::span<const Tensor> tensors, Extent extent) {
  std::vector<TensorRun> runs;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const std::size_t begin = std::max(tensors[t].offset, extent.begin),
                      end = std::min(tensors[t].offset + tensors[t].count, extent.end);
    if (begin < end) runs.push_back({.tensor = t, .first = begin - tensors[t].offset, .at = begin, .count = end - begin});
  }
  return runs;
}

// A pass over the units of a model visits positions: forward of unit u at u, its backward at 2 units - 1 - u. A group of
// parameters that several units use stays from the first of them to the last, forward and backward apart: it is fetched twice a
// pass however often it is used, never dropped too early, and its gradient is complete at the end of its second stay.
struct Stay {
  std::size_t group = 0;
  std::size_t from = 0, until = 0;  // positions, both used

  friend bool operator==(const Stay&, const Stay&) = default;
};
// By `from`, then as a unit lists them. groups[u]: those that unit u uses.
inline std::vector<Stay> stays_of(std::span<const std::vector<std::size_t>> groups) {
  const std::size_t units = groups.size();
  std::vector<Stay> stays;
  for (std::size_t pass = 0; pass < 2; ++pass) {
    const std::size_t first_of_pass = stays.size();
    for (std::size_t at = pass * units; at < (pass + 1) * units; ++at)
      for (const std::size_t group : groups[at < units ? at : 2 * units - 1 - at]) {
        const auto known = std::find_if(stays.begin() + static_cast<std::ptrdiff_t>(first_of_pass), stays.end(),
                                        [&](const Stay& stay) { return stay.group == group; });
        if (known == stays.end())
          stays.push_back({.group = group, .from = at, .until = at});
        else
          known->until = at;
      }
  }
  return stays;
}

// [bytes] that a rank sends: to ranks of its own node, to others.
struct ZeroSent {
  std::size_t inside = 0, between = 0;

  std::size_t all() const { return inside + between; }
  friend ZeroSent operator+(ZeroSent a, ZeroSent b) { return {a.inside + b.inside, a.between + b.between}; }
  friend ZeroSent operator*(std::size_t times, ZeroSent each) { return {times * each.inside, times * each.between}; }
  friend bool operator==(const ZeroSent&, const ZeroSent&) = default;
};

// The formulas, for Y parameters (padding counted) on N ranks of a shard group, F groups each with the whole model. Weights and
// gradients take `word` bytes; the optimiser's state is `state` values of float32 a parameter (of mixed precision: masters too).
struct ZeroCosts {
  std::size_t stage = 0;
  std::size_t parameters = 0;  // Y
  std::size_t trained = 0;     // of them: those whose gradients count
  std::size_t ranks = 1, replicas = 1;
  std::size_t node = 0;  // ranks that share one; 0: all of a shard group
  bool secondary = false;
  std::size_t word = 2, state = 3;
  std::size_t micro_batches = 1;
  std::string weight_format, gradient_format;  // on the wire; empty: `word` bytes

  // [bytes]
  std::size_t parameter_bytes() const { return word * (stage < 3 ? parameters : parameters / ranks); }
  std::size_t secondary_bytes() const { return secondary ? word * parameters / here() : 0; }
  std::size_t gradient_bytes() const { return word * (stage < 2 ? parameters : parameters / ranks); }
  std::size_t optimizer_bytes() const { return 4 * state * (stage < 1 ? parameters : parameters / ranks); }
  std::size_t bytes() const { return parameter_bytes() + secondary_bytes() + gradient_bytes() + optimizer_bytes(); }

  // A step. Weights of stage 3 are gathered for forward and for backward; with secondary shards only the first time from all
  // ranks, and as they are after that. Accumulation in shards (stages 2, 3) reduces every micro-batch.
  ZeroSent gathered() const {
    if (stage == 0) return {};
    if (stage < 3) return over_ranks(word * trained);
    const std::size_t times = 2 * micro_batches, from_all = secondary ? 1 : times;
    const ZeroSent from_node{over_ranks(word * parameters).inside, 0};
    return from_all * over_ranks(wire_bytes(weight_format, parameters, word)) + (times - from_all) * from_node;
  }
  ZeroSent scattered() const {
    if (stage == 0) return {};
    return (stage < 2 ? 1 : micro_batches) * over_ranks(wire_bytes(gradient_format, trained, word));
  }
  ZeroSent all_reduced() const {
    if (stage == 0) return 2 * over_ranks(wire_bytes(gradient_format, trained, word));
    return {0, 2 * others(wire_bytes(gradient_format, trained / ranks, word), replicas)};
  }
  ZeroSent sent() const { return gathered() + scattered() + all_reduced(); }
  // The sum of the gradient's squares, for clipping.
  ZeroSent norm() const {
    const std::size_t all = others(2 * sizeof(double), ranks), between = others(2 * sizeof(double), nodes()) / here();
    return {all - between, between};
  }

 private:
  std::size_t here() const { return node == 0 ? ranks : node; }
  std::size_t nodes() const { return ranks / here(); }
  static std::size_t others(std::size_t bytes, std::size_t n) { return bytes * (n - 1) / n; }
  // All-gather, or reduce-scatter, of so many in all; the two exchanges of quantised gradients send the same.
  ZeroSent over_ranks(std::size_t bytes) const {
    const std::size_t shard = bytes / ranks;
    return {(ranks - nodes()) * shard, (nodes() - 1) * shard};
  }
};

}  // namespace shoal::train
