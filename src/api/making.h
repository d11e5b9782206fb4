// SPDX-License-Identifier: Apache-2.0
// Communicators in the making: by init, split or shrink, blocking or in the background. Makers run beside each other, since each
// may wait for another one's.
#pragma once

#include <nccl.h>

#include <functional>
#include <memory>
#include <vector>

#include "api/handle.h"
#include "core/status.h"

namespace shoal::api {

struct Making {
  const char* function;  // the caller's, for texts
  ncclComm_t* out;
  ncclConfig_t config;  // as read
  bool blocking = true;
  int device = 0;
  // Takes its place in the order of the parent, if it has one; the caller's thread.
  std::function<void()> issue;
  // On any thread. Null: this rank is in none.
  std::function<Result<std::unique_ptr<comm::Communicator>>(const comm::Interrupted&)> make;
  // Set if make will give none. Where it is not blocking, it runs here.
  std::shared_ptr<device::Stream> for_none;
};

// Whether a communicator of this configuration blocks: the environment decides before the caller.
Result<bool> is_blocking(const ncclConfig_t& config);

// Makes all. Blocking: *out is the handle when this returns; NULL where there is none, and on error. Non-blocking: *out is a
// handle in the making, and the result in_progress. Blocking and non-blocking ones together are invalid_argument.
Status make_all(std::vector<Making> all);

}  // namespace shoal::api
