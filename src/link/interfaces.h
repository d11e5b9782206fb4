// SPDX-License-Identifier: Apache-2.0
// Which of a machine's addresses a rank offers to its peers, in what order and why: the part behind usable_addresses (socket.h).
// The choice is pure, so that tests can choose among interfaces that this machine does not have. Functions without state.
#pragma once

#include <string>
#include <vector>

#include "core/status.h"
#include "link/socket.h"

namespace shoal::link {

// At most this many interfaces are offered, as NCCL does.
inline constexpr std::size_t kMaxInterfaces = 16;

// What became of the addresses that were seen.
struct AddressChoice {
  std::vector<InterfaceAddress> chosen;  // one an interface, best first
  std::vector<std::string> left_out;     // "docker0 (172.17.0.1): NCCL_SOCKET_IFNAME leaves it out"
};

// Order: InfiniBand, the subnet of NCCL_COMM_ID (`near`), others, docker's bridges, then link-local addresses; where there is
// nothing of all this, or the filter asks for it by name: loopback (IPv6's only where there is no other) and bridges of virtual
// machines. Filter, family and failure as usable_addresses.
Result<AddressChoice> choose_addresses(std::vector<InterfaceAddress> seen, const std::string& ifname_filter,
                                       const std::string& family);
// The same for this machine. `near`: an address, or nothing.
Result<AddressChoice> consider_addresses(const std::string& ifname_filter, const std::string& family, const std::string& near);

// "eth0 (10.0.0.1)"
std::string describe(const InterfaceAddress& address);
// "eth0 (10.0.0.1), ib0 (10.1.0.1)", or "none"
std::string describe(const std::vector<InterfaceAddress>& addresses);

// An IPv6 link-local address is worth nothing without the interface to send by, whose name is this machine's own: "ip:port" ->
// the same by each of `interfaces`, the one that the address names first. Any other address stays as it is.
std::vector<std::string> with_scopes(const std::string& address, const std::vector<std::string>& interfaces);
// By this machine's interfaces, `first` (may be empty) before the others.
std::vector<std::string> with_own_scopes(const std::string& address, const std::string& first);
// "ip:port" or "ip" without its scope, and the scope ("" if there is none).
std::string without_scope(const std::string& address);
std::string scope_of(const std::string& address);
// Of an IP address without a port.
bool is_loopback(const std::string& ip);
bool is_link_local(const std::string& ip);

}  // namespace shoal::link
