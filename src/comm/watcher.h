// SPDX-License-Identifier: Apache-2.0
// The one thread of a process that listens to the control planes of all its communicators, so that news arrives and the root's
// questions are answered while the program computes, or waits somewhere else. It sleeps in poll; a forked child has none until
// it makes a communicator of its own.
#pragma once

#include "core/status.h"
#include "link/link.h"

namespace shoal::comm {

// Served on the watcher's thread. Must not call watch or unwatch from there.
class Watched {
 public:
  virtual ~Watched() = default;
  virtual link::Wakeup wakeup() const = 0;  // of descriptors only
  virtual void serve() = 0;                 // what came over the descriptor; never blocks
  virtual void dump() = 0;                  // the user asked for a picture of everything
};

// Until unwatch. system_error if there can be no thread.
Status watch(Watched& watched);
// Returns when it is not being served and will not be again.
void unwatch(Watched& watched);
// The descriptor's events may have changed. Any thread.
void look_again();

// From now on SIGUSR2 dumps, unless the program has a handler of its own. The first call counts.
void dump_on_signal();

}  // namespace shoal::comm
