// SPDX-License-Identifier: Apache-2.0
// Listening where others were told to connect: an address or a host's name with a port. Blocks at most for its patience.
#pragma once

#include <chrono>
#include <string>

#include "core/status.h"
#include "link/socket.h"

namespace shoal::comm {

// A numeric address is listened at as it is. A name says how others find this host, not what it is called here (its own hosts
// file may say loopback): all addresses are listened at. Tries again while the port is taken.
Result<link::Listener> listen_at_agreed(const link::HostPort& where, std::chrono::milliseconds patience);

}  // namespace shoal::comm
