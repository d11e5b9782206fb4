// SPDX-License-Identifier: Apache-2.0
// Data-parallel training: every rank holds the whole model, takes its share of every global batch, and the gradients are summed
// over ranks, bucket by bucket, while backward goes on. Collective over all ranks of the launch.
#pragma once

#include <optional>
#include <string>

#include "train/data/fashion_mnist.h"
#include "train/error.h"
#include "train/parallel/buckets.h"
#include "train/parallel/parameter_server.h"
#include "train/trainer.h"

namespace shoal::train {

struct DataOptions {
  Recipe recipe;
  BucketCaps caps;
  std::string folder = kFashionMnistFolder;
  std::size_t limit = SIZE_MAX;           // training samples
  std::optional<double> target_accuracy;  // %
  bool check = false;
  std::string compressor;               // "NAME[:KEY=VALUE,...]"; empty: none
  std::string algorithm;                // of the all-reduce, as NCCL_ALGO takes it; empty: the library's choice
  std::optional<ServerOptions> server;  // instead of the all-reduce
  std::string json;                     // path; empty: none
  std::size_t log_every = 100;          // steps; 0: never
};

// Prints on rank 0. Throws Error for everything that ends the run before its time.
Exit run_data_parallel(const DataOptions& options, Seat seat);

}  // namespace shoal::train
