// SPDX-License-Identifier: Apache-2.0
// Which addresses a process listens at: the candidates of a root service, and those of a rank's own door, which is where it was
// seen to be reachable. Functions that open listeners; no state.
#pragma once

#include <string>
#include <vector>

#include "core/environment.h"
#include "core/status.h"
#include "link/interfaces.h"
#include "link/link.h"
#include "link/socket.h"

namespace shoal::comm {

// Listens at every address that NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY leave, one port for all; logs what was seen, taken and
// left out, and why. An address that cannot be listened at is left out, too; none left: the last one's error.
Result<link::NetworkDoors> open_candidates(const Environment& environment, int rank);

// A rank's door, once it has reached its root service. A connection that left this machine shows the address to use; else, or
// where the variables forbid that one, all that they leave.
Result<link::NetworkDoors> open_own_door(const link::StreamEnds& to_root, const Environment& environment, int rank);

// Where `peers` have several addresses: the one by which this rank reached their host's root service comes first.
void prefer_proven(std::vector<link::PeerIdentity>& peers, const std::string& root_ip);

// invalid_usage if a rank can only be reached at a loopback address while another is of another host, naming rank, address and
// remedy. The same on all ranks.
Status check_reachable(const std::vector<link::PeerIdentity>& peers);

}  // namespace shoal::comm
