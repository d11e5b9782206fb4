// SPDX-License-Identifier: Apache-2.0
// Makes the links of one rank of one communicator, lazily: only those that a plan asks for. The lower rank of a pair connects,
// the higher accepts; which transport is used is decided by the connecting side, in the order of the list, going on with the
// next one where a handshake fails. Connections that arrive before this rank asks for them are kept. Strangers on the listening
// sockets cost a slot for a bounded time and nothing else.
//
// Owned by a communicator, driven by the thread that drives its plans; nothing blocks.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "core/status.h"
#include "link/handshake.h"
#include "link/link.h"

namespace shoal::link {

class Switchboard {
 public:
  // `peers` by rank (self included); `transports` in order of preference; `tcp` and `local` may be closed listeners (then only
  // what needs no listener works). All referenced objects outlive the switchboard.
  Switchboard(const Endpoint& self, std::span<const PeerIdentity> peers, const Key& key, std::span<Transport* const> transports,
              Listener tcp, Listener local);
  ~Switchboard();

  // The link to `peer` on `channel`, or null while it is being made (call progress and ask again). The first call starts it.
  Result<Link*> link(Rank peer, int channel);

  // Accepts, shakes hands, finishes. Errors of strangers are not errors; a failed attempt to reach a peer comes out of link().
  void progress();
  void wakeups(std::vector<Wakeup>& into) const;

  // Every link made so far, to look at its health or to flush it.
  template <typename F>
  void for_each_link(F&& f);
};

}  // namespace shoal::link
