// SPDX-License-Identifier: Apache-2.0
// A communicator that was split off another one, and ends with its owner: closed, so that what other ranks still have to take
// from this one is theirs to take; on the way out of a failure aborted, so that nobody waits.
#pragma once

#include <exception>
#include <utility>

#include "train/error.h"
#include "train/parallel/comm.h"

namespace shoal::train {

class OwnComm {
 public:
  explicit OwnComm(Communicator comm) : comm_(std::move(comm)) {}
  // Collective over the ranks of `parent`: those with the same colour, ordered by key. `ledger` outlives this.
  OwnComm(const Communicator& parent, std::size_t colour, std::size_t key, Ledger& ledger)
      : comm_(parent.split(static_cast<int>(colour), static_cast<int>(key))) {
    comm_.count_in(&ledger);
  }
  ~OwnComm() {
    if (aborted_ || std::uncaught_exceptions() > failures_) return;
    try {
      comm_.close();
    } catch (const Error&) {
      // Whoever used it has been told of its failure; all that is lost is the farewell.
    }
  }
  OwnComm(const OwnComm&) = delete;
  OwnComm& operator=(const OwnComm&) = delete;

  // Before it ends: for an owner of something that waits for what is under way.
  void abort() {
    comm_.abort();
    aborted_ = true;
  }

  const Communicator& operator*() const { return comm_; }
  Communicator* operator->() { return &comm_; }
  const Communicator* operator->() const { return &comm_; }

 private:
  Communicator comm_;
  int failures_ = std::uncaught_exceptions();
  bool aborted_ = false;
};

}  // namespace shoal::train
