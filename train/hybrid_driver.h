// SPDX-License-Identifier: Apache-2.0
// All ways at once: a grid of ranks, each of which is a stage of a pipeline, holds a part of that stage's matrices, a part of
// every sequence's tokens, and a share of the sequences. Nothing is new here: the pipeline runs units whose matrices a tensor
// group shares and whose attention spans a sequence group; what remains is who is in which group, and which gradients are added
// up.
#pragma once

#include <memory>

#include "train/parallel/comm.h"
#include "train/parallel/grid.h"
#include "train/parallel/pipeline_plan.h"
#include "train/parallel/sequence_layout.h"
#include "train/pipeline_driver.h"
#include "train/text_driver.h"

namespace shoal::train {

struct HybridOptions {
  GridShape grid;
  PipelineOptions pipeline;
  bool sequence_parallel = false;  // of the tensor group: norms and residuals on shares of the rows
  std::size_t columns = 1;         // of the sequence group: ranks that exchange heads; the rest is a ring
  Placing placing = Placing::zigzag;
};

// Throws Error (Exit::usage) naming the numbers that do not fit.
std::unique_ptr<TextDriver> make_hybrid_driver(const TextRecipe& recipe, const Communicator& comm, const HybridOptions& options);

}  // namespace shoal::train
