// SPDX-License-Identifier: Apache-2.0
#include "transports/transports.h"

#include <array>

#include "transports/loopback/transport.h"
#include "transports/shm/transport.h"
#include "transports/tcp/transport.h"

namespace shoal::transports {

std::span<link::Transport* const> transports() {
  static LoopbackTransport loopback;
  static ShmTransport shm;
  static TcpTransport tcp;
  static const std::array<link::Transport*, 3> list{&loopback, &shm, &tcp};
  return list;
}

}  // namespace shoal::transports
