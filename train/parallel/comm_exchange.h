// SPDX-License-Identifier: Apache-2.0
// An exchange over a communicator: passes run on a stream of their own, under the caller's computation.
#pragma once

#include "train/parallel/comm.h"
#include "train/parallel/exchange.h"

namespace shoal::train {

class CommExchange final : public Exchange<float> {
 public:
  // `comm` outlives this, and is used by nobody else between pass and wait.
  explicit CommExchange(const Communicator& comm) : comm_(comm), stream_(comm.seat()) {}

  Seat seat() const override { return comm_.seat(); }
  void all_to_all(std::span<const float> from, std::span<const std::size_t> from_sizes, std::span<float> to,
                  std::span<const std::size_t> to_sizes) override;
  void pass(std::span<const float> mine, std::span<float> theirs) override;
  void wait() override;

 private:
  const Communicator& comm_;
  Stream stream_;
};

}  // namespace shoal::train
