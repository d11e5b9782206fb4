// SPDX-License-Identifier: Apache-2.0
// Calls between ncclGroupStart and ncclGroupEnd: collected by the calling thread, run together at the outermost End. A call
// outside any group runs at once. Thread-local state; no locks.
#pragma once

#include <nccl.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "api/handle.h"
#include "api/making.h"
#include "device/stream.h"
#include "engine/call.h"

namespace shoal::api {

// What is left to do where a call was run, once it has ended well. Its failure is the call's, but not the communicator's.
class Sequel {
 public:
  virtual ~Sequel() = default;
  virtual Status run() = 0;
};

// One collective call of one communicator, or (if it has any) point-to-point transfers, checked. It gets its place in the
// communicator's order when it is run or enqueued.
struct Issued {
  Entered on;
  engine::Call call;
  comm::Exchange exchange;
  const void* late_factor = nullptr;       // read when the call runs
  std::shared_ptr<device::Stream> stream;  // null: the calling thread runs it
  bool on_worker = false;                  // of its non-blocking communicator: that is `stream`
  std::unique_ptr<Sequel> sequel;          // null: nothing
};

// Runs it, or keeps it for the end of the group. in_progress for what the worker of a non-blocking communicator runs.
Status submit(Issued issued);

// A communicator in the making: at once, or with the others at the end of the group.
Status submit(Making making);

// The end of a communicator, or of its calls: at once, or after all else at the end of the group.
using Ending = std::function<Status()>;
Status submit(Ending ending);

// Whether the calling thread is between ncclGroupStart and the outermost ncclGroupEnd.
bool in_group();

// Ends the calling thread's innermost group without running it. Seconds that the outermost one would have taken from its first
// call to the end of its last, by the model that algorithms are chosen with; nothing for an inner one. Calls on one communicator
// follow each other, communicators work side by side. Fails as ncclGroupEnd does before it runs anything, and for
// communicators in the making.
Result<std::optional<double>> simulate_group();

// Notes an argument error that was made inside a group, so that its end returns it too; passes it through.
Status poison_group(Status status);

}  // namespace shoal::api
