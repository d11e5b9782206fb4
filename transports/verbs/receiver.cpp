// SPDX-License-Identifier: Apache-2.0
#include "transports/verbs/receiver.h"

#include <array>
#include <cstring>

#include "core/expects.h"

namespace shoal::transports::verbs {
namespace {

// From here on a payload is worth an offer, which is a small message of its own, so that it is not copied.
constexpr std::size_t kWorthLanding = 8 << 10;
// Releases and offers travel by one queue, whose immediates stay in order.
constexpr std::size_t kControl = 0;

}  // namespace

Receiver::Receiver(Queues& queues, const Layout& layout) : queues_(queues), layout_(layout), slots_(layout.slots()) {}

std::optional<std::uint32_t> Receiver::take(std::uint32_t immediate) {
  const std::uint64_t number = count_of(immediate, released_);
  // In unsigned numbers what is before released_ is far ahead.
  if (number - released_ >= layout_.slots()) {
    complaint_ = fmt::format("sent message {}, where {} to {} have room", number, released_, released_ + layout_.slots() - 1);
    return std::nullopt;
  }
  Slot& place = slot(number);
  ++place.parts;
  if (kind_of(immediate) != Kind::message) return std::nullopt;
  place.headed = true;
  Header header;
  std::memcpy(&header, queues_.memory().data() + layout_.slot(number) - sizeof header, sizeof header);
  return header.released;
}

const link::Message* Receiver::front() {
  if (complete_) return &message_;
  const Slot& place = slot(released_);
  if (!place.headed || !complaint_.empty()) return nullptr;
  return complete_ = read(place), complete_ ? &message_ : nullptr;
}

// True: the message is whole.
bool Receiver::read(const Slot& place) {
  const std::byte* const wire = queues_.memory().data() + layout_.slot(released_);
  Header header;
  std::memcpy(&header, wire - sizeof header, sizeof header);
  const bool may_land = !offered_.empty() && offered_number_ == released_ && header.length <= offered_.size();
  if (header.length > layout_.max_message())
    complaint_ = fmt::format("announced a message of {} bytes where {} is the most", header.length, layout_.max_message());
  else if (header.parts < 1 || header.parts > queues_.count() || place.parts > header.parts)
    complaint_ =
        fmt::format("announced a message in {} parts, {} came by {} queue pairs", header.parts, place.parts, queues_.count());
  else if (header.landed > 1 || (header.landed == 1 && !may_land))
    complaint_ = fmt::format("announced {} bytes where nothing was offered to it", header.length);
  if (!complaint_.empty() || place.parts < header.parts) return false;
  message_ = {.payload = {header.landed == 1 ? offered_.data() : wire, header.length}, .tag = {header.tag}};
  return true;
}

void Receiver::release() {
  expects(complete_, "release follows a front that gave a message");
  slot(released_) = {};
  if (!offered_.empty() && offered_number_ == released_) offered_ = {};
  complete_ = false;
  target_ = {};
  owes_offer_ = false;
  ++released_;
  progress();
}

void Receiver::expect(std::span<std::byte> target) {
  target_ = target;
  owes_offer_ = target.size() >= kWorthLanding;
  if (owes_offer_) offer();
}

void Receiver::progress() {
  if (owes_offer_) offer();
  if (released_ - told_ < layout_.batch() || !queues_.has_room(kControl, 1)) return;
  queues_.post(kControl, {.to = queues_.peer_memory(),
                          .remote_key = queues_.peer_key(kControl),
                          .immediate = immediate(Kind::released, tell_released())});
}

// Only for what is not on its way yet, as far as is known here: else the peer does not need it any more.
void Receiver::offer() {
  const Slot& place = slot(released_);
  if (place.parts > 0 || (!offered_.empty() && offered_number_ == released_)) {
    owes_offer_ = false;
    return;
  }
  if (!queues_.has_room(kControl, 1)) return;
  owes_offer_ = false;
  Offer made{.number = released_, .address = reinterpret_cast<std::uintptr_t>(target_.data()), .length = target_.size()};
  for (std::size_t i = 0; i < queues_.rails(); ++i) {
    const std::optional<Keys> keys = queues_.rail(i).device->keys_of(target_);
    if (!keys) return;
    made.keys[i] = keys->remote;
  }
  std::byte* const outbox = queues_.memory().data() + layout_.outbox(released_);
  std::memcpy(outbox, &made, sizeof made);
  offered_ = target_;
  offered_number_ = released_;
  queues_.post(kControl, {.from = {outbox, sizeof made},
                          .to = queues_.peer_memory() + layout_.offer(released_),
                          .remote_key = queues_.peer_key(kControl),
                          .immediate = immediate(Kind::offer, released_),
                          .counts = true});
}

}  // namespace shoal::transports::verbs
