// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/bucket_reducer.h"

#include <utility>

#include "train/stopwatch.h"

namespace shoal::train {

BucketReducer::BucketReducer(const Communicator& comm, std::span<float> gradients, std::vector<Bucket> buckets,
                             Compression* compression)
    : comm_(comm), gradients_(gradients), buckets_(std::move(buckets)), compression_(compression), stream_(comm.seat()) {
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    begun_.emplace_back(comm.seat());
    done_.emplace_back(comm.seat());
  }
}

void BucketReducer::ready_from(std::size_t offset) {
  while (launched_ < buckets_.size() && buckets_[launched_].begin >= offset) launch(launched_++);
}

void BucketReducer::launch(std::size_t bucket) {
  const auto piece = gradients_.subspan(buckets_[bucket].begin, buckets_[bucket].count());
  begun_[bucket].record(stream_);
  if (compression_ != nullptr)
    compression_->launch(bucket, piece, comm_, stream_);
  else
    check(ncclAllReduce(piece.data(), piece.data(), piece.size(), ncclFloat32, ncclSum, comm_.handle(), stream_.handle()),
          "ncclAllReduce of gradients", comm_.seat());
  done_[bucket].record(stream_);
}

void BucketReducer::wait(std::size_t bucket) {
  const Stopwatch watch;
  done_[bucket].wait();
  times_.exposed_ms += watch.ms();
  comm_.check_async();
  if (compression_ != nullptr) compression_->count(bucket);
  times_.busy_ms += done_[bucket].ms_since(begun_[bucket]);
  if (bucket + 1 == buckets_.size()) launched_ = 0;
}

CommTimes BucketReducer::take_times() { return std::exchange(times_, {}); }

}  // namespace shoal::train
