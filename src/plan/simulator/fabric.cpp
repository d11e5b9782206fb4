// SPDX-License-Identifier: Apache-2.0
#include "plan/simulator/fabric.h"

#include <algorithm>
#include <cmath>

#include "core/expects.h"

namespace shoal::plan {
namespace {

template <typename Resource>
std::vector<Resource> several(std::int32_t n, double bandwidth_Bps) {
  return std::vector<Resource>(static_cast<std::size_t>(n), Resource{.seconds_per_byte = 1 / bandwidth_Bps});
}

template <typename Resources>
auto* at(Resources& resources, std::int32_t i) {
  return &resources[static_cast<std::size_t>(i)];
}

}  // namespace

std::string_view name_of(LinkClass link_class) {
  switch (link_class) {
    case LinkClass::within: return "in a host";
    case LinkClass::leaf: return "between hosts";
    case LinkClass::spine: return "between leaves";
  }
  expects(false, "a class of the list");
  return "";
}

Fabric::Fabric(const Cluster& cluster, World world, std::int32_t period)
    : cluster_(cluster), period_(period), places_(plan::places(cluster, world)) {
  std::int32_t hosts = 0, nics = 0, leaves = 0;
  for (std::int32_t r = 0; r < period; ++r) {
    hosts = std::max(hosts, place(r).host + 1);
    nics = std::max(nics, place(r).nic + 1);
    leaves = std::max(leaves, place(r).leaf + 1);
  }
  if (cluster.within.through == Within::switched) {
    port_out_ = several<Resource>(period, cluster.within.bandwidth_Bps);
    port_in_ = port_out_;
  }
  if (cluster.within.through == Within::bus) bus_ = several<Resource>(hosts, cluster.within.bandwidth_Bps);
  nic_out_ = several<Resource>(nics, cluster.nics.out_Bps);
  nic_in_ = several<Resource>(nics, cluster.nics.in_Bps);
  if (std::isfinite(cluster.leaves.uplink_Bps)) {
    up_ = several<Resource>(leaves, cluster.leaves.uplink_Bps);
    down_ = up_;
  }
}

LinkClass Fabric::class_of(std::int32_t from, std::int32_t to) const {
  const Place &a = place(from), &b = place(to);
  if (a.host == b.host) return LinkClass::within;
  return a.leaf == b.leaf ? LinkClass::leaf : LinkClass::spine;
}

double Fabric::credit_s(std::int32_t from, std::int32_t to) const {
  const LinkClass link_class = class_of(from, to);
  if (link_class == LinkClass::within) return cluster_.within.credit_s;
  return cluster_.nics.credit_s + (link_class == LinkClass::spine && cluster_.nics.credit_s > 0 ? cluster_.leaves.latency_s : 0);
}

Fabric::Resource* Fabric::pair(std::int32_t from, std::int32_t to) {
  bool added = false;
  const std::int32_t number = pair_numbers_.find_or_add(from, to, 0, added);
  if (added) {
    pairs_.push_back({.seconds_per_byte = 1 / cluster_.within.bandwidth_Bps});
    pair_ends_.push_back({from, to});
  }
  return at(pairs_, number);
}

// The receiver stands for its whole orbit: it is looked for where its like below `period` is.
Fabric::Route Fabric::route(const Flight& flight) {
  const std::int32_t to = flight.to % period_;
  const Place &a = place(flight.from), &b = place(to);
  Route route;
  const LinkClass link_class = class_of(flight.from, flight.to);
  if (link_class == LinkClass::within) {
    const double latency = cluster_.within.latency_s;
    switch (cluster_.within.through) {
      case Within::pairs: route.add(pair(flight.from, flight.to), latency); break;
      case Within::bus: route.add(at(bus_, a.host), latency); break;
      case Within::switched:
        route.add(at(port_out_, flight.from), latency);
        route.add(at(port_in_, to), 0);
        break;
    }
    return route;
  }
  route.add(at(nic_out_, a.nic), cluster_.nics.latency_s);
  if (link_class == LinkClass::spine) {
    if (up_.empty()) {
      route.hops[0].delay_s += cluster_.leaves.latency_s;
    } else {
      route.add(at(up_, a.leaf), cluster_.leaves.latency_s);
      route.add(at(down_, b.leaf), 0);
    }
  }
  route.add(at(nic_in_, b.nic), 0);
  return route;
}

Fabric::Passage Fabric::pass(Flight& flight, double now_s) {
  const Route way = route(flight);
  const Hop& hop = way.hops[static_cast<std::size_t>(flight.hop)];
  Resource& resource = *hop.resource;
  const double start = std::max(now_s, resource.free_s);
  const double taken = static_cast<double>(flight.bytes) * resource.seconds_per_byte;
  resource.free_s = start + taken;
  resource.busy_s += taken;
  resource.bytes += flight.bytes;
  flight.tail_s = std::max(start + taken, flight.tail_s) + hop.delay_s;
  if (++flight.hop == way.length) return {false, flight.tail_s};
  return {true, start + hop.delay_s};
}

double Fabric::read(std::int32_t from, std::int32_t to, std::uint64_t bytes, double now_s) {
  Flight flight{.from = from, .to = to, .bytes = bytes};
  for (double at_s = now_s;;) {
    const Passage passage = pass(flight, at_s);
    if (!passage.on_its_way) return passage.at_s;
    at_s = passage.at_s;
  }
}

bool Fabric::at_sender(const Flight& flight) const {
  // pairs and bus have one resource; switch ports and NICs two, and up-link and down-link between them.
  if (flight.hop == 0) return true;
  return flight.hop == 1 && !up_.empty() && class_of(flight.from, flight.to) == LinkClass::spine;
}

void Fabric::describe_all(std::vector<Use>& uses) const {
  const std::int32_t per_host = cluster_.nics.per_host;
  const auto add = [&](const Resource& r, std::string name) {
    if (r.bytes != 0) uses.push_back({std::move(name), r.bytes, r.busy_s});
  };
  for (std::size_t i = 0; i < nic_out_.size(); ++i) {
    const auto name =
        fmt::format("host {} NIC {}", static_cast<std::int32_t>(i) / per_host, static_cast<std::int32_t>(i) % per_host);
    add(nic_out_[i], name + " out");
    add(nic_in_[i], name + " in");
  }
  for (std::size_t i = 0; i < up_.size(); ++i) {
    add(up_[i], fmt::format("leaf {} up", i));
    add(down_[i], fmt::format("leaf {} down", i));
  }
  for (std::size_t i = 0; i < port_out_.size(); ++i) {
    add(port_out_[i], fmt::format("rank {} port out", i));
    add(port_in_[i], fmt::format("rank {} port in", i));
  }
  for (std::size_t i = 0; i < bus_.size(); ++i) add(bus_[i], fmt::format("host {} memory", i));
  for (std::size_t i = 0; i < pairs_.size(); ++i)
    add(pairs_[i], fmt::format("rank {} to rank {}", pair_ends_[i][0], pair_ends_[i][1]));
}

std::vector<Fabric::Use> Fabric::busiest(std::size_t most) const {
  std::vector<Use> uses;
  describe_all(uses);
  std::stable_sort(uses.begin(), uses.end(), [](const Use& a, const Use& b) { return a.busy_s > b.busy_s; });
  if (uses.size() > most) uses.resize(most);
  return uses;
}

}  // namespace shoal::plan
