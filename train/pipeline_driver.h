// SPDX-License-Identifier: Apache-2.0
// Training by a pipeline of stages: every step's sequences are cut into micro-batches, which go through the stages in the order
// of a schedule. Alone, or as one of several replicas of a pipeline, each rank of which may be one of a tensor group.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "train/parallel/comm.h"
#include "train/parallel/pipeline_plan.h"
#include "train/parallel/token_share.h"
#include "train/text_driver.h"

namespace shoal::train {

struct PipelineOptions {
  PipelineChoice choice;
  std::string timeline;                 // path of an SVG of the fastest step; empty: none
  std::optional<ActionTimes> stand_in;  // [s] of a whole stage: sleeps take the place of all computing
};

// What the pipeline is part of. What is referenced outlives the driver.
struct PipelineSurroundings {
  const Communicator& stages;  // a rank a stage
  TensorGroup& group;
  Attention& attention;
  Seat replica = {};                                 // of those that share the sequences of a step
  const TokenShare* tokens = nullptr;                // of every sequence, this rank's; null: all
  Ledger* ledger = nullptr;                          // null: one of its own
  std::function<void(Gpt& chunk)> reduce_gradients;  // over replicas, called for each chunk in order; empty: nothing to do
  std::function<double(double loss)> reduce_loss;    // the sum over replicas; empty: there is one
};

// Throws Error (Exit::usage) if recipe, choice and stages do not fit together.
std::unique_ptr<TextDriver> make_pipeline(const TextRecipe& recipe, const PipelineOptions& options,
                                          const PipelineSurroundings& surroundings);

}  // namespace shoal::train
