// SPDX-License-Identifier: Apache-2.0
#include "link/reception.h"

#include <poll.h>

#include <algorithm>

#include "core/log.h"

namespace shoal::link {
namespace {

// The system's lack of descriptors or memory does not pass in a microsecond.
constexpr std::chrono::milliseconds kAfterRefusal{100};

}  // namespace

Reception::Reception(Rank self, const Key& key, NetworkDoors network, Listener local) : self_(self), key_(key) {
  const auto open = [this](Listener listener, Carrier carrier) {
    if (listener.descriptor.is_open()) doors_.push_back({std::move(listener), carrier});
  };
  for (Listener& each : network.listeners) open(std::move(each), Carrier::network);
  open(std::move(local), Carrier::local);
}

bool Reception::listens(Carrier carrier) const {
  return std::any_of(doors_.begin(), doors_.end(), [&](const Door& d) { return d.carrier == carrier; });
}

void Reception::progress(std::vector<Arrival>& arrivals) {
  const Clock::time_point now = Clock::now();
  shake_hands(now, arrivals);  // first, so that nobody whose answer is here is sent away for a newcomer
  const std::size_t known = guests_.size();
  for (Door& door : doors_) accept_at(door, now);
  if (guests_.size() != known) shake_hands(now, arrivals);
  set_timer(now);
}

void Reception::wakeups(std::vector<Wakeup>& into) const {
  const Clock::time_point now = Clock::now();
  for (const Door& door : doors_)
    if (now >= door.closed_until && has_room(now)) into.push_back({door.listener.descriptor.get(), POLLIN, false});
  for (const Guest& guest : guests_) into.push_back(guest.handshake.wakeup());
  if (timer_.wakeup().descriptor >= 0) into.push_back(timer_.wakeup());
}

void Reception::shake_hands(Clock::time_point now, std::vector<Arrival>& arrivals) {
  std::erase_if(guests_, [&](Guest& guest) {
    const Result<bool> proven = guest.handshake.progress();
    if (proven.is_ok() && !*proven) {
      if (now - guest.since < kMaxStay) return false;
      log::info(log::Subsystem::net, self_.value, "dropped a connection that proved nothing for {} ms", kMaxStay.count());
      return true;
    }
    if (!proven.is_ok()) {
      log::info(log::Subsystem::net, self_.value, "dropped a connection: {}", proven.status().text());
      return true;
    }
    std::optional<Hello> hello = Hello::decode(guest.handshake.hello());
    if (hello)
      arrivals.push_back({*std::move(hello), guest.carrier, std::move(guest.handshake)});
    else
      log::info(log::Subsystem::net, self_.value, "dropped a connection: it knows the key, but its hello is not that of a link");
    return true;
  });
}

bool Reception::has_room(Clock::time_point now) const {
  return guests_.size() < kMaxGuests || now - guests_.front().since >= kMinStay;
}

void Reception::accept_at(Door& door, Clock::time_point now) {
  if (now < door.closed_until) return;
  // Bounded, so that a flood at the door does not keep this thread from its own work.
  for (std::size_t i = 0; i < kMaxGuests && has_room(now); ++i) {
    Result<std::optional<Descriptor>> stream = accept_stream(door.listener);
    if (!stream.is_ok()) {
      if (!door.warned) log::warn(self_.value, "{}; trying again every {} ms", stream.status().text(), kAfterRefusal.count());
      door.warned = true;
      door.closed_until = now + kAfterRefusal;
      return;
    }
    if (!*stream) return;
    door.warned = false;
    if (guests_.size() == kMaxGuests) {
      log::info(log::Subsystem::net, self_.value, "dropped the oldest of {} connections that proved nothing", guests_.size());
      guests_.erase(guests_.begin());
    }
    guests_.push_back({Handshake::server(std::move(**stream), key_), door.carrier, now});
  }
}

// For what happens by itself: a guest's time is up, a full house may let go of its oldest, a door opens again.
void Reception::set_timer(Clock::time_point now) {
  std::optional<Clock::time_point> next;
  const auto consider = [&](Clock::time_point when) { next = next ? std::min(*next, when) : when; };
  if (!guests_.empty()) {
    const Clock::time_point since = guests_.front().since;
    consider(since + (has_room(now) ? kMaxStay : kMinStay));
  }
  for (const Door& door : doors_)
    if (now < door.closed_until) consider(door.closed_until);
  timer_.set(next);
}

}  // namespace shoal::link
