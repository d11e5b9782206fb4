// SPDX-License-Identifier: Apache-2.0
// An exchange over a communicator: passes run on a stream of their own, under the caller's computation.
#pragma once

#include "train/parallel/comm.h"
#include "train/parallel/comm_times.h"
#include "train/parallel/exchange.h"

namespace shoal::train {

class CommExchange final : public Exchange<float> {
 public:
  // `comm` outlives this, and is used by nobody else between pass and wait.
  explicit CommExchange(const Communicator& comm) : comm_(comm), begun_(comm.seat()), done_(comm.seat()), stream_(comm.seat()) {}

  Seat seat() const override { return comm_.seat(); }
  void all_to_all(std::span<const float> from, std::span<const std::size_t> from_sizes, std::span<float> to,
                  std::span<const std::size_t> to_sizes) override;
  void pass(std::span<const float> mine, std::span<float> theirs) override;
  void wait() override;

  // Of all passes so far.
  const CommTimes& times() const { return times_; }

 private:
  const Communicator& comm_;
  Event begun_, done_;
  bool under_way_ = false;  // passes since the last wait
  CommTimes times_;
  Stream stream_;  // last member, first to go: its worker writes into the others until it has stopped
};

}  // namespace shoal::train
