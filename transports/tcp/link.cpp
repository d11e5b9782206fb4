// SPDX-License-Identifier: Apache-2.0
#include "transports/tcp/link.h"

#include <poll.h>

#include "transports/peer_status.h"

namespace shoal::transports {

TcpLink::TcpLink(const link::Endpoint& self, const link::PeerIdentity& peer, link::Descriptor stream)
    : stream_(std::move(stream)),
      peer_(peer),
      max_message_(self.max_message),
      sender_(stream_.get(), self.max_message, self.credits),
      receiver_(stream_.get(), self.max_message) {}

const link::Message* TcpLink::front() {
  if (const link::Message* message = receiver_.front()) return message;
  if (looked_) {
    looked_ = false;
    return nullptr;
  }
  receiver_.fill();
  return receiver_.front();
}

// Reads as well while something is to be sent: the peer may be unable to take it before we have taken what it sends.
void TcpLink::progress() {
  if (sender_.is_empty() && !receiver_.is_expecting()) return;
  sender_.flush();
  if (receiver_.front() != nullptr) return;
  receiver_.fill();
  looked_ = receiver_.front() == nullptr;
}

Status TcpLink::health() {
  // What came whole before the end is still to be delivered, unless the caller waits to send what can never go.
  receiver_.fill();
  const bool can_receive = receiver_.front() != nullptr || receiver_.state() == Receiver::State::open;
  const bool can_send = receiver_.state() == Receiver::State::open && sender_.error() == 0;
  if (can_receive && (can_send || !sender_.is_starving())) return {};
  return why_ended();
}

Status TcpLink::why_ended() const {
  using State = Receiver::State;
  const FrameHeader& header = receiver_.header();
  if (receiver_.state() == State::malformed && header.magic != FrameHeader::kMagic)
    return peer_failure(transport(), peer_, "sent a frame that starts with {:#010x} where {:#010x} belongs", header.magic,
                        FrameHeader::kMagic);
  if (receiver_.state() == State::malformed)
    return peer_failure(transport(), peer_, "announced a message of {} bytes where {} is the most", header.length,
                        max_message_.value);
  const int error = receiver_.state() == State::broken ? receiver_.error() : sender_.error();
  if (error != 0) return peer_failure(transport(), peer_, "left or died: {}", errno_text(error));
  return peer_failure(transport(), peer_, "closed the connection");
}

link::Wakeup TcpLink::wakeup() const {
  const int events = POLLIN | (sender_.is_empty() ? 0 : POLLOUT);
  return {.descriptor = stream_.get(), .events = static_cast<short>(events), .rings_doorbell = false};
}

}  // namespace shoal::transports
