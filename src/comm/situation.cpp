// SPDX-License-Identifier: Apache-2.0
#include "comm/situation.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace shoal::comm {
namespace {

std::size_t processes(std::span<const link::PeerIdentity> peers) {
  std::set<std::pair<std::string_view, std::uint64_t>> found;
  for (const link::PeerIdentity& peer : peers) found.emplace(peer.host_id, peer.process);
  return found.size();
}

// Of one host's ranks; see Situation::node.
std::int32_t ranks_a_node(std::span<const HostView> views) {
  if (views.empty() || views.front().node < 0) return 0;
  const auto of_first = std::ranges::find_if(views, [&](const HostView& view) { return view.node != views.front().node; });
  const std::size_t ranks = static_cast<std::size_t>(of_first - views.begin());
  if (ranks < 2 || ranks == views.size() || views.size() % ranks != 0) return 0;
  for (std::size_t r = 0; r < views.size(); ++r)
    if (views[r].node < 0 || views[r].node != views[r / ranks * ranks].node) return 0;
  return static_cast<std::int32_t>(ranks);
}

}  // namespace

Situation situation_of(std::span<const link::PeerIdentity> peers, const Settings& settings, std::span<const HostView> views) {
  Situation now{.world = {static_cast<std::int32_t>(peers.size())}};
  std::map<std::string_view, std::int32_t> ranks_of;
  for (const link::PeerIdentity& peer : peers) ++ranks_of[peer.host_id];
  now.hosts = static_cast<std::int32_t>(ranks_of.size());
  for (const auto& [host, ranks] : ranks_of) now.crowded |= ranks > settings.processors;

  const std::int32_t group = peers.empty() ? 0 : ranks_of[peers.front().host_id];
  bool in_groups = group > 0 && now.world.value % group == 0;
  for (std::size_t r = 0; in_groups && r < peers.size(); ++r)
    in_groups = peers[r].host_id == peers[r / static_cast<std::size_t>(group) * static_cast<std::size_t>(group)].host_id;
  now.group = in_groups ? group : 0;

  const auto same_process = [&](const link::PeerIdentity& peer) {
    return peer.process == peers.front().process && !settings.loopback_disable;
  };
  const bool one_process = std::all_of(peers.begin(), peers.end(), same_process);
  const bool all_local = std::none_of(peers.begin(), peers.end(), [](const auto& peer) { return peer.local_address.empty(); });
  const bool all_apart = settings.shm_disable && (settings.loopback_disable || processes(peers) == peers.size());
  now.streams = now.hosts == now.world.value || all_apart;
  now.mappable = now.hosts == 1 && !settings.shim && (one_process || (!settings.shm_disable && all_local));
  now.node = now.hosts == 1 && views.size() == peers.size() ? ranks_a_node(views) : 0;
  now.order = rank_order(peers, settings.calibration ? &*settings.calibration : nullptr);
  for (const HostView& view : views)
    if (const double Bps = static_cast<double>(view.network_Mbps) * 1e6 / 8;
        Bps > 0 && (now.network_Bps == 0 || Bps < now.network_Bps))
      now.network_Bps = Bps;
  return now;
}

Situation smaller(Situation situation, std::int32_t most) {
  if (situation.world.value > most) situation.order.ranks.clear();  // of all
  if (situation.world.value > most) situation.node = 0;
  while (situation.world.value > most) {
    if (situation.group > 0 && situation.hosts > 2) {
      situation.hosts /= 2;
      situation.world = {situation.hosts * situation.group};
    } else if (situation.group > 0) {
      situation.group /= 2;
      situation.world = {situation.hosts * situation.group};
    } else {
      situation.hosts = std::max(1, situation.hosts / 2);
      situation.world = {situation.world.value / 2};
    }
  }
  return situation;
}

}  // namespace shoal::comm
