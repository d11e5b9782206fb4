// SPDX-License-Identifier: Apache-2.0
#include "comm/comm_id.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "comm/wire.h"
#include "link/socket.h"

namespace shoal::comm {
namespace {

int family_of(const std::string& name) {
  if (name == "AF_INET") return AF_INET;
  return name == "AF_INET6" ? AF_INET6 : AF_UNSPEC;
}

// Numbers for a name, in the resolver's order; a number stays as it is (with its scope).
Result<std::vector<std::string>> numeric_hosts(const std::string& host, const Environment& environment) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_family = family_of(environment.socket_family);
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (error != 0)
    return fail(Code::invalid_argument, "NCCL_COMM_ID='{}': '{}' is no address: {}", environment.comm_id, host,
                gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  std::vector<std::string> hosts;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    char text[NI_MAXHOST];
    const int named = getnameinfo(each->ai_addr, each->ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
    if (named != 0) return fail(Code::system_error, "getnameinfo {}: {}", host, gai_strerror(named));
    if (std::find(hosts.begin(), hosts.end(), text) == hosts.end()) hosts.emplace_back(text);
  }
  return hosts;
}

link::Key key_of(const Environment& environment) {
  ByteWriter material;
  material.text(environment.secret);
  material.text(environment.comm_id);
  return link::derive_key(material.take(), "shoal NCCL_COMM_ID key");
}

std::uint64_t number_of(const link::Key& key) {
  const link::Key digest = link::derive_key(key.bytes, "shoal NCCL_COMM_ID communicator");
  return ByteReader(digest.bytes).number<std::uint64_t>();
}

}  // namespace

Result<UniqueId> id_of_comm_id(const Environment& environment) {
  const Result<link::HostPort> where = link::parse_host_port(environment.comm_id);
  if (!where.is_ok() || where->port == 0)
    return fail(Code::invalid_argument, "NCCL_COMM_ID='{}': must be address:port with the port that rank 0 shall listen at",
                environment.comm_id);
  const Result<std::vector<std::string>> hosts = numeric_hosts(where->host, environment);
  if (!hosts.is_ok()) return hosts.status();
  UniqueId id;
  for (const std::string& host : *hosts) id.addresses.push_back(link::to_text({host, where->port}));
  if (UniqueId::fit(id.addresses).size() < id.addresses.size()) id.addresses = UniqueId::fit(id.addresses);
  id.key = key_of(environment);
  id.communicator = number_of(id.key);
  return id;
}

bool is_comm_id(const UniqueId& id, const Environment& environment) {
  return !environment.comm_id.empty() && id.key == key_of(environment) && id.communicator == number_of(id.key);
}

}  // namespace shoal::comm
