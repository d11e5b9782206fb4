// SPDX-License-Identifier: Apache-2.0
// The later life of communicators: how they are, what they say of themselves, and their end.
#include "api/errors.h"
#include "api/group.h"
#include "api/handle.h"

using namespace shoal;
using namespace shoal::api;

extern "C" {

ncclResult_t pncclCommFinalize(ncclComm_t comm) {
  return guarded("ncclCommFinalize", [&] { return submit(Ending([comm] { return finalize(comm); })); });
}

ncclResult_t pncclCommDestroy(ncclComm_t comm) {
  return guarded("ncclCommDestroy", [&]() -> Status {
    if (comm == nullptr) return {};
    return submit(Ending([comm] { return end_handle(comm, false); }));
  });
}

// Never waits, not even for the end of a group.
ncclResult_t pncclCommAbort(ncclComm_t comm) {
  return guarded("ncclCommAbort", [&]() -> Status {
    if (comm == nullptr) return {};
    return end_handle(comm, true);
  });
}

ncclResult_t pncclCommRevoke(ncclComm_t comm, int revokeFlags) {
  return guarded("ncclCommRevoke", [&]() -> Status {
    if (revokeFlags != NCCL_REVOKE_DEFAULT)
      return fail(Code::invalid_argument, "revokeFlags is {}, must be NCCL_REVOKE_DEFAULT ({})", revokeFlags,
                  NCCL_REVOKE_DEFAULT);
    return revoke(comm);
  });
}

ncclResult_t pncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError) {
  return guarded("ncclCommGetAsyncError", [&]() -> Status {
    if (Status s = require(asyncError, "asyncError"); !s.is_ok()) return s;
    Result<Entered> entered = Entered::enter(comm, For::state);
    if (!entered.is_ok()) return entered.status();
    *asyncError = guarded("ncclCommGetAsyncError", [&] { return state_of(entered->handle()); });
    return {};
  });
}

ncclResult_t pncclCommCount(const ncclComm_t comm, int* count) {
  return guarded("ncclCommCount", [&]() -> Status {
    if (Status s = require(count, "count"); !s.is_ok()) return s;
    Result<Entered> entered = Entered::enter(comm, For::questions);
    if (!entered.is_ok()) return entered.status();
    *count = entered->communicator().world().value;
    return {};
  });
}

ncclResult_t pncclCommCuDevice(const ncclComm_t comm, int* device) {
  return guarded("ncclCommCuDevice", [&]() -> Status {
    if (Status s = require(device, "device"); !s.is_ok()) return s;
    Result<Entered> entered = Entered::enter(comm, For::questions);
    if (!entered.is_ok()) return entered.status();
    *device = entered->handle().device;
    return {};
  });
}

ncclResult_t pncclCommUserRank(const ncclComm_t comm, int* rank) {
  return guarded("ncclCommUserRank", [&]() -> Status {
    if (Status s = require(rank, "rank"); !s.is_ok()) return s;
    Result<Entered> entered = Entered::enter(comm, For::questions);
    if (!entered.is_ok()) return entered.status();
    *rank = entered->communicator().rank().value;
    return {};
  });
}

[[gnu::weak, gnu::alias("pncclCommFinalize")]] decltype(pncclCommFinalize) ncclCommFinalize;
[[gnu::weak, gnu::alias("pncclCommDestroy")]] decltype(pncclCommDestroy) ncclCommDestroy;
[[gnu::weak, gnu::alias("pncclCommAbort")]] decltype(pncclCommAbort) ncclCommAbort;
[[gnu::weak, gnu::alias("pncclCommRevoke")]] decltype(pncclCommRevoke) ncclCommRevoke;
[[gnu::weak, gnu::alias("pncclCommGetAsyncError")]] decltype(pncclCommGetAsyncError) ncclCommGetAsyncError;
[[gnu::weak, gnu::alias("pncclCommCount")]] decltype(pncclCommCount) ncclCommCount;
[[gnu::weak, gnu::alias("pncclCommCuDevice")]] decltype(pncclCommCuDevice) ncclCommCuDevice;
[[gnu::weak, gnu::alias("pncclCommUserRank")]] decltype(pncclCommUserRank) ncclCommUserRank;

}  // extern "C"
