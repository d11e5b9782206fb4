// SPDX-License-Identifier: Apache-2.0
// Data-parallel training through parameter servers: every rank is a worker, the first ones host a server each as well. In `sync`
// mode the servers are a summation service (BytePS, Jiang et al. 2020), and stand where the all-reduce stood; in the others they
// hold the weights and apply every worker's gradients as they come. Used by the training thread; collective where it says so.
#pragma once

#include <shoal/parameter_server.h>

#include <memory>
#include <span>
#include <vector>

#include "train/parallel/comm.h"
#include "train/parallel/gradient_sync.h"

namespace shoal::train {

enum class ServerMode : std::uint8_t { sync, async, bounded };

struct ServerOptions {
  ServerMode mode = ServerMode::sync;
  std::size_t servers = 1;    // at most the ranks
  std::size_t staleness = 0;  // bounded: how many iterations a worker may be ahead of the slowest
  double rate = 0;            // async, bounded: weights -= rate * gradient, for each worker's gradient
};

class ParameterServer {
 public:
  // Collective. `initial`: the weights, the same on all ranks (async, bounded).
  ParameterServer(const Communicator& comm, const ServerOptions& options, std::span<const float> initial);
  ~ParameterServer();

  // Asynchronous; memory belongs to the library until wait() of what is returned.
  std::uint64_t push(std::size_t first, std::span<const float> gradient);
  std::uint64_t pull_after(std::uint64_t push, std::size_t first, std::span<float> into);
  void wait(std::uint64_t timestamp);
  void end_iteration();

  // Payload through this rank's server, in and out; 0: it has none.
  std::uint64_t server_bytes() const;
  // This worker leaves, and its server ends when all have. Throws what went wrong.
  void close();

 private:
  struct Destroy {
    void operator()(shoalPs_t ps) const { shoalPsAbort(ps), shoalPsDestroy(ps); }  // only on the way out of a failure
  };
  using Handle = std::unique_ptr<shoalPs, Destroy>;

  Seat seat_;
  Handle server_, worker_;
};

// `sync` mode as a seam between a trainer and its peers: pushes buckets as they become ready, pulls their sums.
class ServedSums final : public GradientSync {
 public:
  ServedSums(ParameterServer& server, std::span<float> gradients, std::vector<Bucket> buckets)
      : server_(server), gradients_(gradients), buckets_(std::move(buckets)), pulls_(buckets_.size()) {}

  std::span<const Bucket> buckets() const override { return buckets_; }
  void ready_from(std::size_t offset) override;
  void wait(std::size_t bucket) override;

 private:
  std::span<float> of(const Bucket& bucket) const { return gradients_.subspan(bucket.begin, bucket.count()); }

  ParameterServer& server_;
  std::span<float> gradients_;
  std::vector<Bucket> buckets_;
  std::vector<std::uint64_t> pulls_;
  std::size_t pushed_ = 0;  // buckets of this step
  std::uint64_t last_push_ = 0;
};

}  // namespace shoal::train
