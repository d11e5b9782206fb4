// SPDX-License-Identifier: Apache-2.0
#include "transports/verbs/link.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "transports/peer_status.h"

namespace shoal::transports {

using verbs::Kind;

namespace {

// Whoever waits for acknowledgements looks at the stream's end so rarely: a system call.
constexpr unsigned kLooksAtStream = 64;

}  // namespace

VerbsLink::VerbsLink(const link::PeerIdentity& peer, const verbs::Layout& layout, std::unique_ptr<verbs::Queues> queues,
                     link::Descriptor stream, link::Descriptor news)
    : peer_(peer),
      layout_(layout),
      stream_(std::move(stream)),
      news_(std::move(news)),
      queues_(std::move(queues)),
      receiver_(*queues_, layout_),
      sender_(*queues_, layout_, receiver_) {}

std::span<std::byte> VerbsLink::acquire(Bytes n) {
  std::span<std::byte> memory = sender_.acquire(n);
  if (memory.data() == nullptr && poll()) memory = sender_.acquire(n);
  return memory;
}

const link::Message* VerbsLink::front() {
  if (const link::Message* message = receiver_.front()) return message;
  return poll() ? receiver_.front() : nullptr;
}

bool VerbsLink::send(std::span<const std::byte> payload, link::Tag tag) {
  poll();  // the peer may just have offered where to send it
  return sender_.send_direct(payload, tag);
}

bool VerbsLink::sent() {
  if (sender_.sent()) return true;
  poll();
  return sender_.sent();
}

void VerbsLink::progress() { poll(); }

bool VerbsLink::poll() const {
  const bool found = queues_->poll([this](std::uint32_t immediate) { take(immediate); });
  if (receiver_.owes()) receiver_.progress();
  sender_.progress();
  return found;
}

void VerbsLink::take(std::uint32_t immediate) const {
  switch (verbs::kind_of(immediate)) {
    case Kind::message:
    case Kind::part:
      if (const std::optional<std::uint32_t> released = receiver_.take(immediate)) sender_.take_header(*released);
      return;
    case Kind::offer: return sender_.take_offer(immediate);
    case Kind::released: return sender_.take_released(immediate);
    case Kind::greeting: break;
  }
  complaint_ = fmt::format("sent the immediate {:#010x}, which means nothing here", immediate);
}

// What a peer that has gone has not acknowledged is its loss, not this side's to wait for.
bool VerbsLink::flushed() {
  if (sender_.has_waiting()) poll();
  const bool all = !sender_.has_waiting() && queues_->flushed();
  if (all) unflushed_ = 0;
  if (!all && closed_.empty() && ++unflushed_ % kLooksAtStream == 0) has_ended();
  return all || !closed_.empty();
}

// The stream carries nothing after the handshake.
bool VerbsLink::has_ended() {
  if (closed_.empty()) {
    char byte = 0;
    const ssize_t got = ::recv(stream_.get(), &byte, 1, MSG_DONTWAIT);
    if (got > 0) closed_ = "sent bytes on the stream that only tells its end";
    if (got == 0) closed_ = "closed the connection";
    if (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
      closed_ = fmt::format("left or died: {}", errno_text(errno));
  }
  return !closed_.empty() || !queues_->failure().empty() || !complaint_.empty() || !receiver_.complaint().empty() ||
         !sender_.complaint().empty();
}

Status VerbsLink::health() {
  queues_->look_at_devices();
  const bool ended = has_ended();
  poll();  // after that look: what came before the end is here
  if (!ended && !has_ended()) return {};
  // It is still to be delivered, unless the caller waits to send what can never go.
  if (receiver_.front() != nullptr && !sender_.is_starving()) return {};
  return why_ended();
}

Status VerbsLink::why_ended() const {
  for (const std::string* each : {&receiver_.complaint(), &sender_.complaint(), &std::as_const(complaint_), &closed_})
    if (!each->empty()) return peer_failure(transport(), peer_, "{}", *each);
  return peer_failure(transport(), peer_, "cannot be reached any more: {}", queues_->failure());
}

link::Wakeup VerbsLink::wakeup() const {
  queues_->arm();
  link::Wakeup wakeup{.descriptor = news_.get(), .events = POLLIN, .rings_doorbell = false};
  // What came before the channels were armed wakes nobody.
  if (poll()) wakeup.at = std::chrono::steady_clock::now();
  return wakeup;
}

}  // namespace shoal::transports
