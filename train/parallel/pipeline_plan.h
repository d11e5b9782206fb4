// SPDX-License-Identifier: Apache-2.0
// What a pipeline will do, before anybody does it: which units of the model are in which slice, and in which order each stage
// works. Pure functions; any thread.
#pragma once

#include <span>
#include <vector>

#include "train/model/gpt.h"
#include "train/parallel/schedule.h"

namespace shoal::train {

// The parameters of each unit of the model, in order; of a tied table the copy that a head elsewhere has counts, too.
std::vector<std::size_t> unit_parameters(const GptShape& shape);

// Cuts a row of weights into `slices` runs of at least one each, as even as they go: of all ways the one with the least sum of
// the runs' squares. Throws Error (Exit::usage) naming both numbers if there are fewer units than slices.
std::vector<UnitRange> split_evenly(std::span<const std::size_t> weights, std::size_t slices);

// What the user chose.
struct PipelineChoice {
  ScheduleKind kind = ScheduleKind::one_f_one_b;
  std::size_t micro_batches = 4;
  std::size_t chunks = 1;               // slices a stage
  std::vector<std::size_t> split = {};  // units of each slice; empty: evenly by parameters
  bool recompute = false;               // keep a slice's input only, and run its forward again before its backward
};

struct PipelinePlan {
  Schedule schedule;
  std::vector<UnitRange> slices;  // of slice c * stages + s: chunk c of stage s
  bool recompute = false;

  const ScheduleShape& shape() const { return schedule.shape; }
  UnitRange units(std::size_t stage, std::size_t chunk) const { return slices[chunk * shape().stages + stage]; }
};

// Throws Error (Exit::usage) that names both numbers where stages, micro-batches, chunks, units and the `sequences` of a step (of
// this pipeline) do not fit together.
PipelinePlan plan_pipeline(const GptShape& model, const PipelineChoice& choice, std::size_t stages, std::size_t sequences);

}  // namespace shoal::train
