// SPDX-License-Identifier: Apache-2.0
#include "comm/exchange_time.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace shoal::comm {
namespace {

// The wire within the host that a transfer takes: transfers of equal keys share it.
std::tuple<std::int32_t, bool> wire_of(const engine::Transfer& transfer, plan::Within through) {
  switch (through) {
    case plan::Within::pairs: return {transfer.peer.value, transfer.sending};
    case plan::Within::switched: return {-1, transfer.sending};
    case plan::Within::bus: return {-1, false};
  }
  return {};
}

}  // namespace

double exchange_time(std::span<const engine::Transfer> transfers, Rank self, World world, const plan::Cluster& cluster,
                     Bytes slice) {
  const std::vector<plan::Place> places = plan::places(cluster, world);
  const auto host_of = [&](Rank rank) { return places[static_cast<std::size_t>(rank.value)].host; };
  double processor = 0, out = 0, in = 0, latency = 0;
  std::map<std::tuple<std::int32_t, bool>, double> wires;
  for (const engine::Transfer& each : transfers) {
    const auto bytes = static_cast<double>(each.size.value);
    if (each.peer == self) {  // both ends are here, and one of them copies
      if (each.sending) processor += bytes / cluster.copy_Bps;
      continue;
    }
    const std::size_t messages = std::max<std::size_t>(1, (each.size.value + slice.value - 1) / slice.value);
    processor += bytes / cluster.copy_Bps + (each.sending ? static_cast<double>(messages) * cluster.overhead_s : 0);
    if (host_of(each.peer) == host_of(self)) {
      wires[wire_of(each, cluster.within.through)] += bytes / cluster.within.bandwidth_Bps;
      latency = std::max(latency, cluster.within.latency_s);
    } else {
      (each.sending ? out : in) += bytes / (each.sending ? cluster.nics.out_Bps : cluster.nics.in_Bps);
      latency = std::max(latency, cluster.nics.latency_s);
    }
  }
  if (cluster.cores_per_host > 0 && cluster.ranks_per_host > cluster.cores_per_host)  // ranks of a host take turns
    processor *= static_cast<double>(cluster.ranks_per_host) / cluster.cores_per_host;
  double busiest = std::max({processor, out, in});
  for (const auto& [wire, time] : wires) busiest = std::max(busiest, time);
  return latency + busiest;
}

}  // namespace shoal::comm
