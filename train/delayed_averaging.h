// SPDX-License-Identifier: Apache-2.0
// Training with delayed averaging (parallel/delayed.h): every rank takes steps on its own shard, and the means of their updates
// travel meanwhile. Collective over all ranks of the launch.
#pragma once

#include <string>

#include "train/data/fashion_mnist.h"
#include "train/data/shards.h"
#include "train/error.h"
#include "train/local_worker.h"
#include "train/parallel/delayed.h"

namespace shoal::train {

struct DelayedOptions {
  std::string kind = "dga";  // for the record: what it does stands in the other members
  DelayOptions schedule;
  OuterOptions outer;
  bool by_size = false;  // ranks weigh as many as their shards have samples (FedAvg), else equally
  ReplicaOptions replica;
  Spread spread = Spread::even;
  std::size_t epochs = 1;  // passes of all ranks together; sets replica.iterations
  std::string folder = kFashionMnistFolder;
  std::size_t limit = SIZE_MAX;  // training samples

  double compute_ms = 0;          // above 0: a stand-in that sleeps so long an iteration, no data ...
  std::size_t iterations = 100;   // ... for so many iterations ...
  std::size_t parameters = 1000;  // ... of so many parameters
  std::string json;               // path; empty: none
  std::size_t log_every = 100;    // iterations; 0: never
};

// Prints on rank 0. Throws Error for everything that ends the run before its time.
Exit run_delayed(const DelayedOptions& options, Seat seat);

}  // namespace shoal::train
