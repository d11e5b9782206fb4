// SPDX-License-Identifier: Apache-2.0
// How long one rank's point-to-point transfers of a group take on a cluster: they run side by side, so it is the time of whatever
// is busiest (the rank's processor, its wires within the host, its share of the network in or out), plus the longest latency.
// Pure function; it knows one rank's transfers, so it does not see what others send over the same wires.
#pragma once

#include <span>

#include "engine/transfers.h"
#include "plan/simulator/cluster.h"

namespace shoal::comm {

// Seconds. Messages are cut to `slice` bytes.
double exchange_time(std::span<const engine::Transfer> transfers, Rank self, World world, const plan::Cluster& cluster,
                     Bytes slice);

}  // namespace shoal::comm
