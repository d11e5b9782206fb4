// SPDX-License-Identifier: Apache-2.0
// Calls of the library as one group.
#pragma once

#include <nccl.h>

namespace shoal::perf {

// Runs `body` (which returns an ncclResult_t) within a group if that is needed. The first failure.
template <typename Body>
ncclResult_t in_group(bool needed, Body body) {
  if (!needed) return body();
  ncclResult_t result = ncclGroupStart();
  if (result != ncclSuccess) return result;
  result = body();
  const ncclResult_t end = ncclGroupEnd();
  return result != ncclSuccess ? result : end;
}

}  // namespace shoal::perf
