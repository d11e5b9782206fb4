// SPDX-License-Identifier: Apache-2.0
#include "comm/doors.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "comm/messages.h"
#include "core/log.h"

namespace shoal::comm {
namespace {

constexpr int kPorts = 8;  // drawn, until one is free at all addresses

std::string host_of(const std::string& address) {
  const Result<link::HostPort> where = link::parse_host_port(address);
  return where.is_ok() ? where->host : std::string();
}

// An address of the variable's own, whose subnet is preferred; nothing for a name, or where there is no such variable.
std::string near_address(const Environment& environment) { return host_of(environment.comm_id); }

// All at one port, or, where that port is taken at some addresses, without these.
struct Opening {
  link::NetworkDoors doors;
  std::vector<std::string> refused;  // texts
  Status last;
};

Opening open_at_once(const std::vector<std::string>& ips) {
  Opening opening;
  std::uint16_t port = 0;
  for (const std::string& ip : ips) {
    Result<link::Listener> listener = link::listen_tcp(ip, port);
    if (!listener.is_ok()) {
      opening.refused.push_back(fmt::format("{}: {}", ip, listener.status().text()));
      opening.last = listener.status();
      continue;
    }
    if (port == 0) port = link::parse_host_port(listener->address)->port;
    opening.doors.listeners.push_back(listener.take());
  }
  return opening;
}

Result<link::NetworkDoors> open_at(const std::vector<std::string>& ips, int rank) {
  Opening best = open_at_once(ips);
  for (int i = 1; i < kPorts && !best.refused.empty(); ++i) {
    Opening again = open_at_once(ips);
    if (again.refused.size() < best.refused.size()) best = std::move(again);
  }
  if (best.doors.listeners.empty()) return best.last;
  if (!best.refused.empty())
    log::info(log::Subsystem::bootstrap, rank, "bootstrap: not listened at: {}", fmt::join(best.refused, "; "));
  return std::move(best.doors);
}

std::vector<std::string> ips_of(const std::vector<link::InterfaceAddress>& addresses) {
  std::vector<std::string> ips;
  for (const link::InterfaceAddress& each : addresses) ips.push_back(each.address);
  return ips;
}

void explain(const link::AddressChoice& choice, int rank) {
  log::info(log::Subsystem::bootstrap, rank, "bootstrap: addresses, best first: {}; left out: {}", describe(choice.chosen),
            choice.left_out.empty() ? "none" : fmt::format("{}", fmt::join(choice.left_out, "; ")));
}

// What a rank says of itself has a bound.
void cut_to_fit(link::NetworkDoors& doors) {
  while (doors.listeners.size() > 1 && doors.address().size() > kMaxIdentityText) doors.listeners.pop_back();
}

}  // namespace

Result<link::NetworkDoors> open_candidates(const Environment& environment, int rank) {
  const Result<link::AddressChoice> choice =
      link::consider_addresses(environment.socket_ifname, environment.socket_family, near_address(environment));
  if (!choice.is_ok()) return choice.status();
  explain(*choice, rank);
  return open_at(ips_of(choice->chosen), rank);
}

Result<link::NetworkDoors> open_own_door(const link::StreamEnds& to_root, const Environment& environment, int rank) {
  const Result<link::AddressChoice> choice =
      link::consider_addresses(environment.socket_ifname, environment.socket_family, near_address(environment));
  const bool restricted = !environment.socket_ifname.empty() || !environment.socket_family.empty();
  if (!choice.is_ok() && restricted) return choice.status();
  std::vector<std::string> ips = choice.is_ok() ? ips_of(choice->chosen) : std::vector<std::string>{to_root.here};
  const auto seen = std::find(ips.begin(), ips.end(), to_root.here);
  const bool left_machine = to_root.here != to_root.there && !link::is_loopback(to_root.here);
  std::string reason = "the root service is of this machine: all that others may reach";
  if (left_machine && (seen != ips.end() || !restricted)) {
    reason = "the root service was reached from there";
    ips = {to_root.here};
  } else if (left_machine) {
    reason = fmt::format("the root service was reached from {}, which the variables leave out", to_root.here);
  } else if (seen != ips.end()) {
    std::rotate(ips.begin(), seen, seen + 1);
  }
  Result<link::NetworkDoors> doors = open_at(ips, rank);
  if (!doors.is_ok()) return doors;
  cut_to_fit(*doors);
  log::info(log::Subsystem::bootstrap, rank, "bootstrap: this rank is to be reached at {} ({})", doors->address(), reason);
  return doors;
}

void prefer_proven(std::vector<link::PeerIdentity>& peers, const std::string& root_ip) {
  const std::string proven = link::without_scope(root_ip);
  for (link::PeerIdentity& peer : peers) {
    std::vector<std::string> addresses = link::addresses_in(peer.address);
    if (addresses.size() < 2) continue;
    std::stable_partition(addresses.begin(), addresses.end(),
                          [&](const std::string& each) { return link::without_scope(host_of(each)) == proven; });
    peer.address = fmt::format("{}", fmt::join(addresses, ","));
  }
}

Status check_reachable(const std::vector<link::PeerIdentity>& peers) {
  const auto only_loopback = [](const link::PeerIdentity& peer) {
    const std::vector<std::string> addresses = link::addresses_in(peer.address);
    return !addresses.empty() && std::all_of(addresses.begin(), addresses.end(),
                                             [](const std::string& each) { return link::is_loopback(host_of(each)); });
  };
  for (const link::PeerIdentity& here : peers) {
    if (!only_loopback(here)) continue;
    for (const link::PeerIdentity& there : peers)
      if (there.host_id != here.host_id && !there.address.empty() && !only_loopback(there))
        return {Code::invalid_usage,
                fmt::format("{} can only be reached at {}, which is its own machine's loopback, but {} is of another host: set "
                            "NCCL_SOCKET_IFNAME on {} to an interface that other hosts reach",
                            describe(here), here.address, describe(there), here.host),
                here.rank};
  }
  return {};
}

}  // namespace shoal::comm
