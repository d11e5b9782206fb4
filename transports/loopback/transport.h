// SPDX-License-Identifier: Apache-2.0
// Links between ranks of one process. The specimen: a transport is a name, numbers, a rule for whom it reaches, and connections.
//
// The two ends meet in a table of the process: whoever comes first leaves a channel there, whoever comes second takes it out.
// Ranks may be driven by different threads; connect() and the end of a connection may be called from any.
#pragma once

#include <memory>

#include "link/link.h"

namespace shoal::transports {

class MeetingPlace;

class LoopbackTransport final : public link::Transport {
 public:
  LoopbackTransport();

  std::string_view name() const override { return "loopback"; }
  link::Capabilities capabilities() const override { return {.latency_s = 150e-9, .bandwidth_Bps = 10e9, .overhead_s = 40e-9}; }
  link::Carrier carrier() const override { return link::Carrier::none; }
  bool reaches(const link::Endpoint& self, const link::PeerIdentity& peer) const override;
  std::unique_ptr<link::Connection> connect(const link::Endpoint& self, const link::PeerIdentity& peer, int channel,
                                            link::Descriptor stream, bool connecting) override;

 private:
  std::shared_ptr<MeetingPlace> meetings_;
};

}  // namespace shoal::transports
