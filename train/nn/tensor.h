// SPDX-License-Identifier: Apache-2.0
// The parameters of a model: named tensors laid one after the other in one arena, gradients in a second one of the same layout.
// Registration order is the order of the layers, so that the gradients of the last k layers are one contiguous piece: what a
// bucket covers can be all-reduced in place. Owned by a Network; used by the thread that trains it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace shoal::train {

struct TensorSpec {
  std::string name;                // "dense1.weight"
  std::vector<std::size_t> shape;  // slowest dimension first
  std::size_t fan_in = 0;  // inputs of one output, for the initial deviation; 0: starts at `start` and never decays (a bias)
  float start = 0;
  // Of a part of a tensor that is split over ranks: the whole tensor's shape, and where the part begins in each dimension.
  std::vector<std::size_t> whole = {};  // empty: this is all of it
  std::vector<std::size_t> first = {};
};

struct Tensor {
  TensorSpec spec;
  std::size_t offset = 0;  // [elements] in both arenas
  std::size_t count = 0;
};

std::size_t elements(const TensorSpec& spec);

// Appends, laying the tensor behind the last one.
void append(std::vector<Tensor>& tensors, TensorSpec spec);

// He initialisation: normal with deviation sqrt(2 / fan_in). A function of seed and layout only, so that all ranks start equal.
void initialise(std::span<const Tensor> tensors, std::uint64_t seed, std::span<float> values);

// Normal with deviation 1 / sqrt(fan_in), a function of seed and name: however tensors are split over ranks, the parts are those
// of the same whole.
void initialise_by_name(std::span<const Tensor> tensors, std::uint64_t seed, std::span<float> values);

// 64-bit hash of the bits of the values (FNV-1a over words): equal parameters have equal hashes.
std::uint64_t hash_bits(std::span<const float> values);

}  // namespace shoal::train
