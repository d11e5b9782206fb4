// SPDX-License-Identifier: Apache-2.0
// Links between processes of one host. Stateless: any thread.
#pragma once

#include <memory>

#include "link/link.h"

namespace shoal::transports {

class ShmTransport final : public link::Transport {
 public:
  std::string_view name() const override { return "shm"; }
  link::Capabilities capabilities() const override { return {.latency_s = 200e-9, .bandwidth_Bps = 8e9, .overhead_s = 40e-9}; }
  link::Carrier carrier() const override { return link::Carrier::local; }
  bool reaches(const link::Endpoint& self, const link::PeerIdentity& peer) const override;
  std::unique_ptr<link::Connection> connect(const link::Endpoint& self, const link::PeerIdentity& peer, int channel,
                                            link::Descriptor stream, bool connecting) override;
};

}  // namespace shoal::transports
