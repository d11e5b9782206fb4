// SPDX-License-Identifier: Apache-2.0
#include "link/switchboard.h"

#include <algorithm>
#include <utility>

#include "core/log.h"
#include "link/dialer.h"

namespace shoal::link {
namespace {

// More than any plan has lanes; bounds what a peer can make this rank remember.
constexpr int kMaxChannels = 1024;

}  // namespace

Switchboard::Switchboard(const Endpoint& self, std::span<const PeerIdentity> peers, const Key& key,
                         std::span<Transport* const> transports, NetworkDoors network, Listener local)
    : self_(self),
      peers_(peers),
      key_(key),
      transports_(transports.begin(), transports.end()),
      reception_(self.self.rank, key_, std::move(network), std::move(local)) {}

Switchboard::~Switchboard() = default;

Result<Link*> Switchboard::link(Rank peer, int channel) {
  const bool exists = peer.value >= 0 && static_cast<std::size_t>(peer.value) < peers_.size() && peer != self_.self.rank;
  if (!exists || channel < 0 || channel >= kMaxChannels)
    return fail(Code::invalid_argument, "rank {} of {} has no link to rank {} on channel {}", self_.self.rank.value,
                peers_.size(), peer.value, channel);
  const Place place{peer, channel};
  Line& line = lines_[place];
  if (!std::exchange(line.asked, true) && !line.link && !line.making) start(place, line);
  advance(place, line);
  if (!line.failure.is_ok()) return line.failure;
  line.in_use = line.link != nullptr;
  return line.link.get();
}

void Switchboard::progress() {
  reception_.progress(arrivals_);
  for (Arrival& arrival : arrivals_) admit(std::move(arrival));
  arrivals_.clear();
  for (auto& [place, line] : lines_) advance(place, line);
}

void Switchboard::wakeups(std::vector<Wakeup>& into) const {
  reception_.wakeups(into);
  for (const auto& [place, line] : lines_) {
    if (!line.making) continue;
    const Wakeup wakeup = line.making->wakeup();
    if (wakeup.descriptor >= 0 || wakeup.rings_doorbell) into.push_back(wakeup);
  }
}

std::vector<Transport*> Switchboard::transports_to(const PeerIdentity& peer) const {
  std::vector<Transport*> usable;
  for (Transport* transport : transports_) {
    // A transport without a carrier has no way to tell the peer that it is its turn, unless it is the first.
    const bool in_turn = transport->carrier() != Carrier::none || usable.empty();
    if (in_turn && transport->reaches(self_, peer)) usable.push_back(transport);
  }
  return usable;
}

// This rank's own part: the lower rank's dialer, the other end of a transport without a carrier, or nothing but waiting.
void Switchboard::start(Place place, Line& line) {
  const PeerIdentity& peer = peers_[static_cast<std::size_t>(place.peer.value)];
  std::vector<Transport*> usable = transports_to(peer);
  if (usable.empty()) {
    line.failure = {Code::invalid_usage,
                    fmt::format("no transport reaches from rank {} ({}, pid {}) to rank {} ({}, pid {})", self_.self.rank.value,
                                self_.self.host, self_.self.pid, peer.rank.value, peer.host, peer.pid),
                    peer.rank};
    return;
  }
  if (self_.self.rank < place.peer) {
    line.making = std::make_unique<Dialer>(self_, peer, place.channel, key_, std::move(usable));
    return;
  }
  if (usable.front()->carrier() == Carrier::none) {
    line.making = usable.front()->connect(self_, peer, place.channel, Descriptor(), false);
    return;
  }
  if (std::none_of(usable.begin(), usable.end(), [&](const Transport* t) { return reception_.listens(t->carrier()); }))
    line.failure = {Code::invalid_usage,
                    fmt::format("rank {} has no listener for rank {} ({}, pid {}) to connect to", self_.self.rank.value,
                                peer.rank.value, peer.host, peer.pid),
                    peer.rank};
}

void Switchboard::advance(Place place, Line& line) {
  if (!line.making) return;
  Result<std::unique_ptr<Link>> made = line.making->progress();
  if (made.is_ok() && !*made) return;
  line.making.reset();
  if (made.is_ok()) {
    line.link = made.take();
    log::info(log::Subsystem::net, self_.self.rank.value, "link to rank {} on channel {} by {}", place.peer.value, place.channel,
              line.link->transport());
  } else if (self_.self.rank < place.peer) {
    line.failure = made.status();
  } else {
    log::info(log::Subsystem::net, self_.self.rank.value, "a link from rank {} on channel {} came to nothing: {}",
              place.peer.value, place.channel, made.status().text());
  }
}

std::vector<Switchboard::Visitor> Switchboard::take_visitors(const std::function<bool(Rank)>& wanted) {
  std::vector<Visitor> taken;
  for (auto visitor = visitors_.begin(); visitor != visitors_.end();) {
    if (!wanted(visitor->first)) {
      ++visitor;
      continue;
    }
    taken.push_back({visitor->first, std::move(visitor->second)});
    visitor = visitors_.erase(visitor);
  }
  return taken;
}

// A connection from someone who knows the key. Of two for one place the newer counts: the peer has given up the older.
void Switchboard::admit(Arrival arrival) {
  if (arrival.hello.transport == kVisit) return receive(std::move(arrival));
  if (const Status good = check(arrival); !good.is_ok()) {
    log::info(log::Subsystem::net, self_.self.rank.value, "dropped a connection: {}", good.text());
    return;
  }
  const Place place{arrival.hello.from, arrival.hello.channel};
  Line& line = lines_[place];
  if (line.in_use || !line.failure.is_ok()) {
    log::info(log::Subsystem::net, self_.self.rank.value, "dropped a second connection from rank {} on channel {}",
              place.peer.value, place.channel);
    return;
  }
  line.link.reset();
  line.making = transport_of(arrival)->connect(self_, peers_[static_cast<std::size_t>(place.peer.value)], place.channel,
                                               arrival.shaken.take_stream(), false);
}

void Switchboard::receive(Arrival arrival) {
  const Hello& hello = arrival.hello;
  const bool fits = hello.communicator == self_.communicator && hello.to == self_.self.rank && hello.from.value >= 0 &&
                    static_cast<std::size_t>(hello.from.value) < peers_.size() && hello.from != self_.self.rank;
  if (fits)
    visitors_.insert_or_assign(hello.from, std::move(arrival.shaken));
  else
    log::info(self_.self.rank.value, "dropped a visitor that calls itself rank {} and looks for rank {} of another communicator",
              hello.from.value, hello.to.value);
}

Status Switchboard::check(const Arrival& arrival) const {
  const Hello& hello = arrival.hello;
  const auto wrong = [&](std::string_view what, auto is, auto wanted) {
    return fail(Code::invalid_usage, "a hello from rank {} names {} {}, expected is {}", hello.from.value, what, is, wanted);
  };
  if (hello.communicator != self_.communicator) return wrong("communicator", hello.communicator, self_.communicator);
  if (hello.to != self_.self.rank) return wrong("the destination", hello.to.value, self_.self.rank.value);
  if (hello.from.value < 0 || hello.from >= self_.self.rank)
    return wrong("the source", hello.from.value, "a lower rank than this");
  if (hello.channel < 0 || hello.channel >= kMaxChannels) return wrong("channel", hello.channel, "0 to 1023");
  const Transport* const transport = transport_of(arrival);
  if (transport == nullptr) return wrong("the transport", hello.transport, "one of this rank's, by its carrier");
  if (!transport->reaches(self_, peers_[static_cast<std::size_t>(hello.from.value)]))
    return wrong("the transport", hello.transport, "one that reaches");
  return {};
}

Transport* Switchboard::transport_of(const Arrival& arrival) const {
  const auto found = std::find_if(transports_.begin(), transports_.end(), [&](const Transport* t) {
    return t->name() == arrival.hello.transport && t->carrier() == arrival.carrier;
  });
  return found == transports_.end() ? nullptr : *found;
}

}  // namespace shoal::link
