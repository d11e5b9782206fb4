// SPDX-License-Identifier: Apache-2.0
// The control plane as one rank sees it: its connection to the root service, which watches every rank's connection and tells all
// others what it learns. A connection that ends without "bye" is a death, noticed by the kernel at once.
#pragma once

#include <cstdint>
#include <functional>

#include "comm/report.h"
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
  // Something is wrong: asks the root to hear all ranks. If somebody is to blame, progress will say so, on all ranks alike;
  // `sequence` is the collective's that it is in (0: transfers), `own` what this rank says if nobody knows better. As
  // announce_failure.
  virtual void raise_alarm(Alarm alarm, std::uint64_t sequence, const Status& own) = 0;
  // What to say when no answer came: the root itself may be the culprit.
  virtual Status unanswered(const Status& own) const = 0;
  // This rank leaves in order, after so many collectives: its connection may now close without alarm.
  virtual void bye(std::uint64_t finished = 0) = 0;
  virtual link::Wakeup wakeup() const = 0;

  // What progress would answer is a failure. One load; any thread.
  virtual bool has_news() const = 0;
  // Until the connection's end: `answer` gives this rank's report when the root asks, `news` is called when a failure has come,
  // `dump` when the user wants to see everything. On the watcher's thread or in progress(); they must not call this object.
  struct Listener {
    std::function<Report(std::uint64_t sequence)> answer;
    std::function<void()> news;
    std::function<void()> dump;
  };
  virtual void listen(Listener listener) = 0;
};

}  // namespace shoal::comm
