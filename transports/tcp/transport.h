// SPDX-License-Identifier: Apache-2.0
// Links over TCP, between any two ranks that can reach each other's address. Stateless: any thread.
#pragma once

#include <memory>

#include "link/link.h"

namespace shoal::transports {

class TcpTransport final : public link::Transport {
 public:
  std::string_view name() const override { return "tcp"; }
  link::Capabilities capabilities() const override { return {.latency_s = 15e-6, .bandwidth_Bps = 3e9, .overhead_s = 5e-6}; }
  link::Carrier carrier() const override { return link::Carrier::network; }
  bool reaches(const link::Endpoint& self, const link::PeerIdentity& peer) const override;
  std::unique_ptr<link::Connection> connect(const link::Endpoint& self, const link::PeerIdentity& peer, int channel,
                                            link::Descriptor stream, bool connecting) override;
};

}  // namespace shoal::transports
