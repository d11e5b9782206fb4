// SPDX-License-Identifier: Apache-2.0
// A communicator split off for a driver and counted in its ledger: closed with its owner, in order, or aborted on the way out of
// a failure, for then others may never come.
#pragma once

#include <exception>

#include "train/error.h"
#include "train/parallel/comm.h"

namespace shoal::train {

class OwnComm {
 public:
  // Collective over the ranks of `parent`: those with the same colour, ordered by key. `ledger` outlives this.
  OwnComm(const Communicator& parent, std::size_t colour, std::size_t key, Ledger& ledger)
      : comm_(parent.split(static_cast<int>(colour), static_cast<int>(key))) {
    comm_.count_in(&ledger);
  }
  ~OwnComm() {
    if (std::uncaught_exceptions() > failures_) return;
    try {
      comm_.close();
    } catch (const Error&) {
      // All work has been waited for: what is lost is the farewell.
    }
  }
  OwnComm(const OwnComm&) = delete;
  OwnComm& operator=(const OwnComm&) = delete;

  const Communicator& operator*() const { return comm_; }
  const Communicator* operator->() const { return &comm_; }

 private:
  Communicator comm_;
  int failures_ = std::uncaught_exceptions();
};

}  // namespace shoal::train
