// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/memory_plan.h"

namespace shoal::train {
namespace {

// [bytes] a parameter
constexpr std::uint64_t kWeight = 2, kGradient = 2, kOptimizer = 12;

std::uint64_t shard(std::uint64_t parameters, std::uint64_t world) { return parameters / world + (parameters % world != 0); }

}  // namespace

StateBytes state_bytes(int zero_stage, std::uint64_t parameters, std::uint64_t world) {
  const std::uint64_t part = shard(parameters, world);
  return {.parameters = kWeight * (zero_stage >= 3 ? part : parameters),
          .gradients = kGradient * (zero_stage >= 2 ? part : parameters),
          .optimizer = kOptimizer * (zero_stage >= 1 ? part : parameters)};
}

double bytes_per_parameter(int zero_stage, std::uint64_t world) {
  const StateBytes bytes = state_bytes(zero_stage, world, world);
  return static_cast<double>(bytes.total()) / static_cast<double>(world);
}

std::uint64_t largest_model(int zero_stage, std::uint64_t memory, std::uint64_t world) {
  // Bisection: `low` parameters fit, `high` do not: a parameter takes 16 bytes of some rank's.
  std::uint64_t low = 0, high = memory / 16 * world + world;
  while (low + 1 < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    (state_bytes(zero_stage, middle, world).total() <= memory ? low : high) = middle;
  }
  return low;
}

std::uint64_t sent_elements(int zero_stage, std::uint64_t parameters, std::uint64_t world) {
  return (zero_stage >= 3 ? 3 : 2) * (world - 1) * shard(parameters, world);
}

}  // namespace shoal::train
