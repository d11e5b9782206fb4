// SPDX-License-Identifier: Apache-2.0
// What the model's state takes on each rank of data-parallel training in mixed precision with Adam, by class and by stage of ZeRO
// (Rajbhandari et al. 2020): weights and gradients in 2 bytes; the optimiser's float32 master, momentum and variance, 12. A stage
// cuts one class more into shards of ceil(parameters / world), a rank each. Activations are not state. Pure functions.
#pragma once

#include <array>
#include <cstdint>

namespace shoal::train {

inline constexpr std::array<int, 4> kZeroStages{0, 1, 2, 3};  // 0: plain data parallelism

struct StateBytes {
  std::uint64_t parameters = 0;
  std::uint64_t gradients = 0;
  std::uint64_t optimizer = 0;

  std::uint64_t total() const { return parameters + gradients + optimizer; }
  friend bool operator==(const StateBytes&, const StateBytes&) = default;
};

// Of one rank; parameters up to 2^58, world at least 1.
StateBytes state_bytes(int zero_stage, std::uint64_t parameters, std::uint64_t world);

// [bytes] a parameter where the shards divide evenly: 4 + 12 / world for stage 1.
double bytes_per_parameter(int zero_stage, std::uint64_t world);

// The most parameters whose state fits.
std::uint64_t largest_model(int zero_stage, std::uint64_t memory, std::uint64_t world);

// [elements] that a rank must send a step: gradients and weights, 2 (world - 1) shards; stage 3 gathers the weights twice.
std::uint64_t sent_elements(int zero_stage, std::uint64_t parameters, std::uint64_t world);

}  // namespace shoal::train
