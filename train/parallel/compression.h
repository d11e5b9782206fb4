// SPDX-License-Identifier: Apache-2.0
// How the gradients of a run are compressed: a compressor of the library, a key for each tensor. Belongs to the training thread;
// must outlive the streams that its calls are on.
#pragma once

#include <shoal/compress.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "train/nn/tensor.h"
#include "train/parallel/buckets.h"
#include "train/parallel/comm.h"

namespace shoal::train {

// Means over the run's steps, of rank 0; bytes a step.
struct CompressionRecord {
  std::string compressor;                                        // "dgc:density=0.001"
  std::size_t calls = 0;                                         // of all tensors
  double encoded_bytes = 0, sent_bytes = 0, received_bytes = 0;  // sums over all calls
};

class Compression {
 public:
  // `compressor`: "NAME" or "NAME:KEY=VALUE,..."; throws Error (Exit::usage) if there is none such. `buckets`: a tensor each.
  Compression(const std::string& compressor, std::span<const Tensor> tensors, std::span<const Bucket> buckets);

  // Enqueues the bucket's all-reduce; `gradient` is its memory.
  void launch(std::size_t bucket, std::span<float> gradient, const Communicator& comm, const Stream& stream);
  // After the call has passed.
  void count(std::size_t bucket);
  const CompressionRecord& record() const { return record_; }

 private:
  struct Destroy {
    void operator()(shoalCompressor_t compressor) const { shoalCompressorDestroy(compressor); }
  };
  std::unique_ptr<shoalCompressor, Destroy> compressor_;
  std::vector<const Tensor*> tensors_;           // a bucket's
  std::vector<shoalCompressionReport> reports_;  // a bucket's last call
  CompressionRecord record_;
};

// A bucket a tensor, last tensor first.
std::vector<Bucket> a_bucket_a_tensor(std::span<const Tensor> tensors);

}  // namespace shoal::train
