// SPDX-License-Identifier: Apache-2.0
// In which order ranks stand in rings: those of a host beside each other, and hosts so that the slowest way between neighbours is
// as quick as possible, where all ways were measured. Pure, and the same on all ranks. Value type.
#pragma once

#include <span>
#include <vector>

#include "comm/calibration.h"
#include "link/link.h"

namespace shoal::comm {

struct RankOrder {
  std::vector<Rank> ranks;    // by position; empty: that of their numbers
  double slowest_Bps = 0;     // of all ways between the hosts, which any plan may take; 0: not measured
  double neighbours_Bps = 0;  // of those between neighbours in `ranks`
};

// `calibration` may be null. Hosts that have one name, or ways that were not measured, count as not measured at all.
RankOrder rank_order(std::span<const link::PeerIdentity> peers, const Calibration* calibration);

}  // namespace shoal::comm
