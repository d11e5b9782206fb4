// SPDX-License-Identifier: Apache-2.0
// A communicator that was split off another one, and ends with its owner: closed, so that what other ranks still have to take
// from this one is theirs to take; on the way out of a failure aborted, so that nobody waits.
#pragma once

#include <exception>
#include <utility>

#include "train/error.h"
#include "train/parallel/comm.h"

namespace shoal::train {

class Child {
 public:
  explicit Child(Communicator comm) : comm_(std::move(comm)) {}
  Child(Child&&) = default;
  Child& operator=(Child&&) = delete;
  ~Child() {
    if (comm_.handle() == nullptr || std::uncaught_exceptions() > 0) return;
    try {
      comm_.close();
    } catch (const Error&) {  // whoever used it has been told of its failure
    }
  }

  Communicator& operator*() { return comm_; }
  Communicator* operator->() { return &comm_; }

 private:
  Communicator comm_;
};

}  // namespace shoal::train
