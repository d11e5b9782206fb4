// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/link.h"

#include <poll.h>

#include "transports/peer_status.h"

namespace shoal::transports {
namespace {

constexpr short kEndOfPeer = POLLIN | POLLRDHUP;  // nothing is ever sent, so that readable means closed

}  // namespace

ShmLink::ShmLink(const RingPair& pair, link::Mapping memory, link::DoorbellPage peers_page, link::Mapping peers_window,
                 link::Descriptor stream, bool connecting, const link::PeerIdentity& peer)
    : memory_(std::move(memory)),
      peers_page_(std::move(peers_page)),
      peers_doorbell_(peers_page_.doorbell()),
      peers_window_(std::move(peers_window)),
      stream_(std::move(stream)),
      peer_(peer),
      max_message_(pair.shape.max_message),
      outgoing_(connecting ? pair.from_connecting(memory_.memory()) : pair.from_accepting(memory_.memory()), pair.shape),
      incoming_(connecting ? pair.from_accepting(memory_.memory()) : pair.from_connecting(memory_.memory()), pair.shape) {}

Status ShmLink::health() {
  if (incoming_.impossible_length() != 0)
    return peer_failure(transport(), peer_, "announced a message of {} bytes where {} is the most", incoming_.impossible_length(),
                        max_message_.value);
  pollfd stream{.fd = stream_.get(), .events = kEndOfPeer, .revents = 0};
  if (::poll(&stream, 1, 0) <= 0) return {};
  // It published its last message before it went.
  if (incoming_.front() != nullptr && !outgoing_.is_starving()) return {};
  return peer_failure(transport(), peer_, "left or died");
}

link::Wakeup ShmLink::wakeup() const { return {.descriptor = stream_.get(), .events = kEndOfPeer, .rings_doorbell = true}; }

}  // namespace shoal::transports
