// SPDX-License-Identifier: Apache-2.0
// Functions of the API that are declared and not there yet.
#include <nccl.h>

#include "api/errors.h"

namespace {

ncclResult_t pending(const char* function) {
  return shoal::api::guarded(function, [] { return shoal::fail(shoal::Code::invalid_usage, "not implemented yet"); });
}

}  // namespace

extern "C" {

ncclResult_t pncclCommInitRankScalable(ncclComm_t*, int, int, int, ncclUniqueId*, ncclConfig_t*) {
  return pending("ncclCommInitRankScalable");
}

ncclResult_t pncclCommSplit(ncclComm_t, int, int, ncclComm_t*, ncclConfig_t*) { return pending("ncclCommSplit"); }

ncclResult_t pncclCommShrink(ncclComm_t, int*, int, ncclComm_t*, ncclConfig_t*, int) { return pending("ncclCommShrink"); }

ncclResult_t pncclCommRevoke(ncclComm_t, int) { return pending("ncclCommRevoke"); }

[[gnu::weak, gnu::alias("pncclCommInitRankScalable")]] decltype(pncclCommInitRankScalable) ncclCommInitRankScalable;
[[gnu::weak, gnu::alias("pncclCommSplit")]] decltype(pncclCommSplit) ncclCommSplit;
[[gnu::weak, gnu::alias("pncclCommShrink")]] decltype(pncclCommShrink) ncclCommShrink;
[[gnu::weak, gnu::alias("pncclCommRevoke")]] decltype(pncclCommRevoke) ncclCommRevoke;

}  // extern "C"
