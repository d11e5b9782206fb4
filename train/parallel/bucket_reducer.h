// SPDX-License-Identifier: Apache-2.0
// All-reduces gradient buckets on a stream of their own while backward goes on: start_k = max(ready_k, end_{k-1}), and only what
// is still on the wire when the training thread asks for it costs time. Buckets are launched in bucket order on every rank.
// Belongs to the training thread; must not outlive the communicator or the gradients.
#pragma once

#include <span>
#include <vector>

#include "train/parallel/comm.h"
#include "train/parallel/comm_times.h"
#include "train/parallel/compression.h"
#include "train/parallel/gradient_sync.h"

namespace shoal::train {

class BucketReducer final : public GradientSync {
 public:
  // `compression`: null, or what compresses each of the buckets; it outlives this.
  BucketReducer(const Communicator& comm, std::span<float> gradients, std::vector<Bucket> buckets, Compression* compression);

  std::span<const Bucket> buckets() const override { return buckets_; }
  void ready_from(std::size_t offset) override;
  void wait(std::size_t bucket) override;

  // Of the steps since the last call. All buckets have been waited for.
  CommTimes take_times();

 private:
  void launch(std::size_t bucket);

  const Communicator& comm_;
  std::span<float> gradients_;
  std::vector<Bucket> buckets_;
  Compression* compression_;
  std::vector<Event> begun_, done_;  // an event a bucket
  std::size_t launched_ = 0;         // buckets of this step
  CommTimes times_;
  Stream stream_;  // last member, first to go: its worker writes into the others until it has stopped
};

}  // namespace shoal::train
