// SPDX-License-Identifier: Apache-2.0
// The control plane as one rank sees it: its connection to the root service, which watches every rank's connection and tells all
// others what it learns. A connection that ends without "bye" is a death, noticed by the kernel at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "core/status.h"
#include "link/link.h"

namespace shoal::comm {

class Control {
 public:
  virtual ~Control() = default;

  // Reads what has arrived; never blocks. Ok, or the first failure that was announced, for good: remote_error naming rank, host
  // and pid ("rank 2 (node7, pid 4121) died"), or "aborted", or the text that a failing rank gave. Any thread.
  virtual Status progress() = 0;
  // Tells all other ranks. Safe from any thread, never blocks for long, never fails (a dead root is noticed by progress).
  virtual void announce_failure(const Status& why) = 0;
  virtual void announce_abort() = 0;
  // This rank leaves in order: its connection may now close without alarm.
  virtual void bye() = 0;
  virtual link::Wakeup wakeup() const = 0;
};

}  // namespace shoal::comm
