// SPDX-License-Identifier: Apache-2.0
// What the choice of an algorithm may know of where the ranks are: a pure function of the agreed table of peers and settings, the
// same on all ranks. Value type.
#pragma once

#include <span>

#include "comm/host_view.h"
#include "comm/rank_order.h"
#include "comm/settings.h"
#include "link/link.h"

namespace shoal::comm {

struct Situation {
  World world;
  std::int32_t hosts = 1;
  std::int32_t group = 0;  // ranks a host, if every host has as many, in the order of ranks; else 0
  // Ranks a NUMA node, if there is one host, with as many on each of several, in the order of ranks; else 0.
  std::int32_t node = 0;
  bool mappable = false;   // every rank can map every other's memory, and may
  bool crowded = false;    // some host has more ranks than processors
  bool streams = false;    // no two ranks share memory: every link is a stream over the network
  double network_Bps = 0;  // of the slowest host whose network's speed is known; 0: of none it is
  RankOrder order;         // in which ranks stand in rings

  // Request::group: the finest border within which all ranks are close.
  std::int32_t close() const { return node > 0 ? node : group; }
};

// One of the same shape with at most `most` ranks: fewer hosts, then fewer ranks a host, halved again and again.
Situation smaller(Situation situation, std::int32_t most);

// `views`: by rank; none: nothing is known of hosts.
Situation situation_of(std::span<const link::PeerIdentity> peers, const Settings& settings, std::span<const HostView> views = {});

}  // namespace shoal::comm
