// SPDX-License-Identifier: Apache-2.0
#include "transports/transports.h"

#include <array>

#include "transports/loopback/transport.h"
#include "transports/shm/transport.h"
#include "transports/tcp/transport.h"
#ifdef SHOAL_UCX
#include "transports/ucx/transport.h"
#endif
#include "transports/verbs/transport.h"

namespace shoal::transports {

std::span<link::Transport* const> transports() {
  static LoopbackTransport loopback;
  static ShmTransport shm;
  static VerbsTransport verbs;
  static TcpTransport tcp;
#ifdef SHOAL_UCX  // whoever asks for it by name gets it before what would do without being asked
  static UcxTransport ucx;
  static const std::array<link::Transport*, 5> list{&loopback, &shm, &ucx, &verbs, &tcp};
#else
  static const std::array<link::Transport*, 4> list{&loopback, &shm, &verbs, &tcp};
#endif
  return list;
}

}  // namespace shoal::transports
