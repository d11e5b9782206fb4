// SPDX-License-Identifier: Apache-2.0
#include "tools/topo/seat.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "comm/process.h"
#include "core/environment.h"
#include "core/json_fields.h"
#include "link/socket.h"
#include "tools/topo/arguments.h"
#include "topo/files/host_json.h"
#include "transports/transports.h"

namespace shoal::topo_tool {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostBytes = 16 << 20;

// "name/boot/network namespace": what comes after the name is beyond anybody's choice.
std::string domain_of(const std::string& host_id) {
  const std::size_t space = host_id.rfind('/');
  const std::size_t boot = space == std::string::npos || space == 0 ? std::string::npos : host_id.rfind('/', space - 1);
  return boot == std::string::npos ? host_id : host_id.substr(boot);
}

bool has(const Seat& seat, std::string_view network) { return std::ranges::find(seat.networks, network) != seat.networks.end(); }

std::vector<std::string> networks_of(const Seat& seat) {
  link::Endpoint self;
  self.self = seat.identity;
  link::PeerIdentity stranger = seat.identity;
  stranger.rank = {seat.identity.rank.value + 1};
  stranger.host_id = "another host";
  std::vector<std::string> names;
  for (const link::Transport* each : transports::transports())
    if (each->carrier() == link::Carrier::network && each->reaches(self, stranger)) names.emplace_back(each->name());
  return names;
}

// What speaks for this network, or against a better one.
std::string remark(const Seat& from, const Seat& to, const std::string& transport) {
  if (transport == "verbs") return ", RDMA at both ends";
  if (transport == "tcp" && has(from, "verbs") != has(to, "verbs"))
    return fmt::format(", no RDMA device that rank {} may use", (has(from, "verbs") ? to : from).identity.rank.value);
  return "";
}

std::string reason(const Seat& from, const Seat& to, const std::string& transport) {
  if (transport == "loopback") return "one process";
  if (transport == "shm") return "one host";
  if (from.identity.host_id == to.identity.host_id) return from.shm_disable ? "one host, but NCCL_SHM_DISABLE is 1" : "one host";
  if (domain_of(from.identity.host_id) == domain_of(to.identity.host_id)) return "one machine, but other names (NCCL_HOSTID)";
  return from.identity.host == to.identity.host ? "one name, but another boot or network namespace" : "two hosts";
}

}  // namespace

Seat seat_here(int rank) {
  Seat seat;
  const Result<Environment>& variables = environment();  // the library has looked at it before
  seat.identity = comm::identity_of_this_process({rank}, variables.is_ok() ? *variables : Environment{});
  if (variables.is_ok()) {
    seat.shm_disable = variables->shm_disable;
    seat.loopback_disable = variables->loopback_disable;
    const auto addresses = link::usable_addresses(variables->socket_ifname, variables->socket_family);
    for (std::size_t i = 0; addresses.is_ok() && i < addresses->size(); ++i)
      seat.identity.address += (i > 0 ? "," : "") + (*addresses)[i].address;
  }
  seat.identity.local_address = "@";  // every process can have one
  seat.networks = networks_of(seat);
  seat.host = this_machine();
  return seat;
}

std::string text_of(const Seat& seat) {
  const Json json = {{"host", seat.identity.host},
                     {"host_id", seat.identity.host_id},
                     {"process", fmt::format("{}", seat.identity.process)},
                     {"pid", seat.identity.pid},
                     {"address", seat.identity.address},
                     {"shm_disable", seat.shm_disable},
                     {"loopback_disable", seat.loopback_disable},
                     {"networks", seat.networks},
                     {"topology", topo::json_of(seat.host)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Seat> parse_seat(const std::string& text) {
  const auto json = parse_json(text, kMostBytes);
  if (!json.is_ok()) return json.status();
  Seat seat;
  Status failure;
  std::string process, topology;
  JsonFields fields(*json, "", failure);
  fields.text("host", seat.identity.host);
  fields.text("host_id", seat.identity.host_id);
  fields.text("process", process);
  fields.whole("pid", seat.identity.pid);
  fields.text("address", seat.identity.address);
  fields.boolean("shm_disable", seat.shm_disable);
  fields.boolean("loopback_disable", seat.loopback_disable);
  fields.texts("networks", seat.networks);
  fields.text("topology", topology);
  fields.no_others();
  if (!failure.is_ok()) return failure;
  seat.identity.process = std::strtoull(process.c_str(), nullptr, 10);
  seat.identity.local_address = "@";
  Result<topo::Host> host = topo::parse_host(topology);
  if (!host.is_ok()) return host.status();
  seat.host = host.take();
  return seat;
}

Way way_between(const std::vector<Seat>& seats, std::size_t from, std::size_t to) {
  link::Endpoint self;
  self.self = seats[from].identity;
  self.shm_disable = seats.front().shm_disable;
  self.loopback_disable = seats.front().loopback_disable;
  Seat agreed = seats[from];
  agreed.shm_disable = self.shm_disable;
  for (const link::Transport* transport : transports::transports())
    if (const std::string name(transport->name()); transport->carrier() == link::Carrier::network
                                                       ? has(seats[from], name) && has(seats[to], name)
                                                       : transport->reaches(self, seats[to].identity))
      return {name, reason(agreed, seats[to], name) + remark(agreed, seats[to], name)};
  return {"none", "no usable network interface"};
}

}  // namespace shoal::topo_tool
