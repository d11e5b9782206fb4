// SPDX-License-Identifier: Apache-2.0
// How long a collective takes at least on a cluster, whatever the algorithm. Pure.
#pragma once

#include "plan/collective.h"
#include "plan/simulator/cluster.h"

namespace shoal::plan {

// The largest over three kinds of cut: around each rank, around each host, around each leaf. In an all-reduce of n bytes among u
// such parts at least 2(u-1) n bytes enter the parts together, so that one takes 2(u-1)/u n through what joins it to the others,
// and a message's latency passes after the last byte is sent; likewise for the other collectives. Reductions take (p-1)/p n bytes
// of adding on some processor. (The lg p latencies of the literature hold where a rank sends one message at a time; here it may
// send many.) Of unequal parts only what holds for any is used.
double lower_bound(Collective collective, World world, double bytes, const Cluster& cluster);

}  // namespace shoal::plan
