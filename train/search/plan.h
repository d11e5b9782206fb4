// SPDX-License-Identifier: Apache-2.0
// How to split a transformer's training over a cluster: both levels of Alpa's search together, and beside it every uniform plan,
// dp x tp x pp, that shoal-train hybrid can run, priced alike. Pure; any thread.
#pragma once

#include <optional>
#include <vector>

#include "train/search/intra.h"

namespace shoal::train {

struct PlannedStage {
  std::size_t first = 0, last = 0;  // units: the embedding, the blocks, the head
  Mesh mesh;
  std::size_t device = 0;  // the first one
  IntraPlan inner;
  double seconds = 0;  // of a micro-batch, with the messages of the boundary before it
  double bytes = 0;    // of a device, at its peak
};

struct Plan {
  std::size_t micro_batches = 1;
  std::vector<PlannedStage> stages;
  double seconds = 0;  // of a step
};

struct Grid {
  std::size_t dp = 1, tp = 1, pp = 1;
  friend bool operator==(const Grid&, const Grid&) = default;
};
struct UniformPlan {
  Grid grid;
  Plan plan;
};
// The grid of a plan all of whose stages have the same degrees.
std::optional<Grid> grid_of(const Plan& plan);

struct SearchQuestion {
  SearchModel model;
  SearchCluster cluster;
  std::size_t micro_batches = 0;  // 0: the best divisor of the batch
  std::size_t groups = 8;         // blocks are gathered in as many layers at most, as evenly as they go
  double epsilon = 1e-3;          // InterProblem's
};

struct SearchAnswer {
  std::optional<Plan> best;          // none: nothing fits the memory
  std::vector<UniformPlan> uniform;  // that fit, the fastest first, each with its best number of micro-batches
};

// Throws Error (Exit::usage) if the micro-batches do not divide the batch, or without CBC.
SearchAnswer search_plan(const SearchQuestion& question);

}  // namespace shoal::train
