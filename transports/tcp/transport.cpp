// SPDX-License-Identifier: Apache-2.0
#include "transports/tcp/transport.h"

#include <utility>

#include "core/expects.h"
#include "transports/tcp/link.h"

namespace shoal::transports {
namespace {

// The authenticated stream is the link's stream: there is nothing left to agree on.
class TcpConnection final : public link::Connection {
 public:
  TcpConnection(const link::Endpoint& self, const link::PeerIdentity& peer, link::Descriptor stream)
      : link_(std::make_unique<TcpLink>(self, peer, std::move(stream))) {}

  Result<std::unique_ptr<link::Link>> progress() override {
    expects(link_ != nullptr, "a connection gives its link once");
    return std::move(link_);
  }
  link::Wakeup wakeup() const override { return {}; }

 private:
  std::unique_ptr<link::Link> link_;
};

}  // namespace

bool TcpTransport::reaches(const link::Endpoint& self, const link::PeerIdentity& peer) const {
  return !self.self.address.empty() && !peer.address.empty();
}

std::unique_ptr<link::Connection> TcpTransport::connect(const link::Endpoint& self, const link::PeerIdentity& peer,
                                                        int /*channel*/, link::Descriptor stream, bool /*connecting*/) {
  if (self.self.host_id != peer.host_id) link::use_systems_congestion_control(stream);
  return std::make_unique<TcpConnection>(self, peer, std::move(stream));
}

}  // namespace shoal::transports
