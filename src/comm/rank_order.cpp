// SPDX-License-Identifier: Apache-2.0
#include "comm/rank_order.h"

#include <algorithm>
#include <map>
#include <set>

#include "topo/bound/ring_order.h"

namespace shoal::comm {
namespace {

constexpr std::size_t kMostHosts = 256;  // whose order is looked for, within a tenth of a second: beyond it is cut off too early

struct Host {
  std::string name;
  std::vector<Rank> ranks;
};

// In the order of their first ranks.
std::vector<Host> hosts_of(std::span<const link::PeerIdentity> peers) {
  std::vector<Host> hosts;
  std::map<std::string_view, std::size_t> known;
  for (const link::PeerIdentity& peer : peers) {
    const auto [at, is_new] = known.emplace(peer.host_id, hosts.size());
    if (is_new) hosts.push_back({peer.host, {}});
    hosts[at->second].ranks.push_back(peer.rank);
  }
  return hosts;
}

// Seconds a byte from host to host; empty if some way is not known.
topo::CostMatrix costs_of(const std::vector<Host>& hosts, const Calibration* calibration) {
  std::set<std::string_view> names;
  for (const Host& each : hosts) names.insert(each.name);
  if (calibration == nullptr || hosts.size() < 2 || hosts.size() > kMostHosts || names.size() < hosts.size()) return {};
  topo::CostMatrix costs(hosts.size(), std::vector<double>(hosts.size()));
  for (std::size_t from = 0; from < hosts.size(); ++from)
    for (std::size_t to = 0; to < hosts.size(); ++to) {
      if (from == to) continue;
      const auto found = calibration->paths_Bps.find({hosts[from].name, hosts[to].name});
      if (found == calibration->paths_Bps.end()) return {};
      costs[from][to] = 1 / found->second;
    }
  return costs;
}

double most_in(const topo::CostMatrix& costs) {
  double most = 0;
  for (const std::vector<double>& row : costs) most = std::max(most, *std::ranges::max_element(row));
  return most;
}

}  // namespace

RankOrder rank_order(std::span<const link::PeerIdentity> peers, const Calibration* calibration) {
  const std::vector<Host> hosts = hosts_of(peers);
  RankOrder order;
  std::vector<int> way;
  if (const topo::CostMatrix costs = costs_of(hosts, calibration); !costs.empty()) {
    way = topo::ring_order(costs);
    order.slowest_Bps = 1 / most_in(costs);
    order.neighbours_Bps = 1 / topo::ring_cost(costs, way).slowest;
  } else {
    for (std::size_t h = 0; h < hosts.size(); ++h) way.push_back(static_cast<int>(h));
  }
  for (const int h : way)
    for (const Rank rank : hosts[static_cast<std::size_t>(h)].ranks) order.ranks.push_back(rank);
  if (std::ranges::is_sorted(order.ranks, {}, &Rank::value)) order.ranks.clear();
  return order;
}

}  // namespace shoal::comm
