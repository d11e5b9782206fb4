// SPDX-License-Identifier: Apache-2.0
// Every collective's struct, a file each.
#pragma once

#include "perf/collective.h"

namespace shoal::perf {

extern const Collective kAllReduce, kAllGather, kReduceScatter, kBroadcast, kReduce, kAllToAll, kAllToAllV, kGather, kScatter,
    kSendRecv, kHypercube;

}  // namespace shoal::perf
