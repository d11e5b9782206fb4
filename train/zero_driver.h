// SPDX-License-Identifier: Apache-2.0
// ZeRO: data-parallel training of the transformer whose optimiser state, gradients and weights are sharded over the ranks (stages
// 1, 2, 3; Rajbhandari et al. 2020), or not (stage 0). A group of parameters is a unit's; a tied table is one of its own. Shards
// inside groups of ranks, replicated over the groups: hybrid sharding (Zhao et al. 2023); quantised collectives: ZeRO++ (Wang et
// al. 2023).
#pragma once

#include "train/parallel/zero_store.h"
#include "train/text_driver.h"

namespace shoal::train {

struct ZeroTraining {
  ZeroOptions store;
  std::size_t prefetch = 1;    // units whose weights are fetched ahead of the one that computes; stage 3
  std::size_t accumulate = 1;  // micro-batches a step
};

// Collective. Throws Error (Exit::usage), naming the numbers, if recipe or world do not fit.
std::unique_ptr<TextDriver> make_zero(const TextRecipe& recipe, const ZeroTraining& training, const Communicator& comm);

}  // namespace shoal::train
