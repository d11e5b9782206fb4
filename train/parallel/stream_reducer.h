// SPDX-License-Identifier: Apache-2.0
// Rounds of delayed averaging over the library: each an all-reduce on a stream beside the training thread. A communicator serves
// its calls one after the other, so rounds that are to travel at the same time each have one of their own, in turns. Belongs to
// the training thread.
#pragma once

#include <vector>

#include "train/parallel/comm.h"
#include "train/parallel/delayed.h"
#include "train/parallel/ledger.h"

namespace shoal::train {

class StreamReducer final : public RoundReducer<float> {
 public:
  // Collective. At most `at_once` rounds travel at a time; one more may have been started.
  StreamReducer(const Communicator& comm, std::size_t at_once);

  void start(std::uint64_t round, std::span<float> values) override;
  void wait(std::uint64_t round) override;

  const Ledger& ledger() const { return ledger_; }
  double waited_ms() const { return waited_ms_; }
  void close();  // the communicators; nothing is on its way

 private:
  struct Lane {
    explicit Lane(const Communicator& all) : comm(all.split(0, static_cast<int>(all.seat().rank))), stream(all.seat()) {}
    Communicator comm;
    Stream stream;  // first to go
  };
  Lane& lane(std::uint64_t round) { return lanes_[round % lanes_.size()]; }
  const Event& done(std::uint64_t round) const { return done_[round % done_.size()]; }

  Ledger ledger_;
  std::vector<Event> done_;  // an event a round that may have been started
  std::vector<Lane> lanes_;
  double waited_ms_ = 0;
};

}  // namespace shoal::train
