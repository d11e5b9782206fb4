// SPDX-License-Identifier: Apache-2.0
// ncclGroupSimulateEnd: what a group would take.
#include <cstddef>
#include <cstring>

#include "api/errors.h"
#include "api/group.h"

namespace {

using namespace shoal;
using namespace shoal::api;

constexpr unsigned kMagic = 0x74685283;

// The layout is NCCL's; programs built against its header pass it.
static_assert(sizeof(ncclSimInfo_t) == 24 && offsetof(ncclSimInfo_t, magic) == 8 && offsetof(ncclSimInfo_t, version) == 12 &&
              offsetof(ncclSimInfo_t, estimatedTime) == 16);

// A caller's struct may be longer than ours, but must have the answer's place.
Status check(const ncclSimInfo_t* info) {
  if (Status s = require(info, "simInfo"); !s.is_ok()) return s;
  if (info->size < offsetof(ncclSimInfo_t, estimatedTime) + sizeof info->estimatedTime)
    return fail(Code::invalid_argument, "simInfo.size is {}: start from NCCL_SIM_INFO_INITIALIZER", info->size);
  if (info->magic != kMagic)
    return fail(Code::invalid_argument, "simInfo.magic is {:#x}: start from NCCL_SIM_INFO_INITIALIZER", info->magic);
  return {};
}

// The group ends in any case, as it does with ncclGroupEnd.
Status simulate(ncclSimInfo_t* info) {
  const Result<std::optional<double>> seconds = simulate_group();
  if (!seconds.is_ok()) return seconds.status();
  if (Status s = check(info); !s.is_ok()) return s;
  if (seconds->has_value()) info->estimatedTime = static_cast<float>(**seconds * 1e6);
  return {};
}

}  // namespace

extern "C" {

ncclResult_t pncclGroupSimulateEnd(ncclSimInfo_t* simInfo) {
  return guarded("ncclGroupSimulateEnd", [&] { return simulate(simInfo); });
}

[[gnu::weak, gnu::alias("pncclGroupSimulateEnd")]] decltype(pncclGroupSimulateEnd) ncclGroupSimulateEnd;

}  // extern "C"
