// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/compression.h"

#include "train/error.h"

namespace shoal::train {

Compression::Compression(const std::string& compressor, std::span<const Tensor> tensors, std::span<const Bucket> buckets)
    : reports_(buckets.size()) {
  const std::size_t colon = std::min(compressor.find(':'), compressor.size());
  const std::string name = compressor.substr(0, colon), options = compressor.substr(std::min(colon + 1, compressor.size()));
  shoalCompressor_t made = nullptr;
  if (shoalCompressorCreate(&made, name.c_str(), options.c_str()) != ncclSuccess)
    throw failure(Exit::usage, "--compressor: {}", ncclGetLastError(nullptr));
  compressor_.reset(made);
  record_.compressor = compressor;
  for (const Bucket& bucket : buckets)
    for (const Tensor& tensor : tensors)
      if (tensor.offset == bucket.begin) tensors_.push_back(&tensor);
}

void Compression::launch(std::size_t bucket, std::span<float> gradient, const Communicator& comm, const Stream& stream) {
  const TensorSpec& spec = tensors_[bucket]->spec;
  const std::size_t rows = spec.shape.size() > 1 ? spec.shape.front() : 1;
  check(shoalAllReduceCompressed(gradient.data(), gradient.data(), gradient.size(), ncclFloat32, ncclSum, compressor_.get(),
                                 spec.name.c_str(), rows, comm.handle(), stream.handle(), &reports_[bucket]),
        "shoalAllReduceCompressed of gradients", comm.seat());
}

void Compression::count(std::size_t bucket) {
  const shoalCompressionReport& report = reports_[bucket];
  record_.calls += 1;
  record_.encoded_bytes += static_cast<double>(report.encodedBytes);
  record_.sent_bytes += static_cast<double>(report.sentBytes);
  record_.received_bytes += static_cast<double>(report.receivedBytes);
}

std::vector<Bucket> a_bucket_a_tensor(std::span<const Tensor> tensors) {
  std::vector<Bucket> buckets;
  for (std::size_t t = tensors.size(); t-- > 0;)
    buckets.push_back({.begin = tensors[t].offset, .end = tensors[t].offset + tensors[t].count});
  return buckets;
}

}  // namespace shoal::train
