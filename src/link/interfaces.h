// SPDX-License-Identifier: Apache-2.0
// Which of a machine's addresses a rank offers to its peers: the pure part of usable_addresses (socket.h), so that tests can
// choose among interfaces that this machine does not have. Functions without state.
#pragma once

#include <string>
#include <vector>

#include "core/status.h"
#include "link/socket.h"

namespace shoal::link {

// At most this many interfaces are offered, as NCCL does.
inline constexpr std::size_t kMaxInterfaces = 16;

// From all addresses of running interfaces to one an interface, best first; arguments and failure as usable_addresses.
Result<std::vector<InterfaceAddress>> choose_addresses(std::vector<InterfaceAddress> seen, const std::string& ifname_filter,
                                                       const std::string& family);

}  // namespace shoal::link
