// SPDX-License-Identifier: Apache-2.0
#include "transports/verbs/sender.h"

#include <algorithm>
#include <cstring>

#include "core/expects.h"

namespace shoal::transports::verbs {
namespace {

// Each part of a message has at least so much: less would cost more in requests than another queue wins.
constexpr std::size_t kLeastPart = 16 << 10;

}  // namespace

Sender::Sender(Queues& queues, const Layout& layout, Receiver& receiver)
    : queues_(queues), layout_(layout), receiver_(receiver) {}

std::span<std::byte> Sender::acquire(Bytes n) {
  expects(n.value <= layout_.max_message(), "a message is at most max_message bytes");
  refused_ = has_waiting() || !has_slot() || !has_room(parts_of(n.value));
  if (refused_) return {};
  acquired_ = {queues_.memory().data() + layout_.staging(next_), n.value};
  return acquired_;
}

void Sender::commit(link::Tag tag) {
  expects(acquired_.data() != nullptr, "commit follows an acquire that gave memory");
  post({.payload = acquired_, .staged = true}, tag, std::nullopt, false);
  acquired_ = {};
}

bool Sender::send_direct(std::span<const std::byte> payload, link::Tag tag) {
  expects(payload.size() <= layout_.max_message(), "a message is at most max_message bytes");
  if (!sent()) return false;
  payload_ = payload;
  tag_ = tag;
  direct_ = Direct::waiting;
  start_direct();
  return true;
}

bool Sender::sent() {
  if (direct_ != Direct::flying) return direct_ == Direct::none;
  for (std::size_t i = 0; i < queues_.count(); ++i)
    if (queues_.ended(i) < flying_[i]) return false;
  direct_ = Direct::none;
  return true;
}

void Sender::progress() {
  if (has_waiting()) start_direct();
}

void Sender::start_direct() {
  const std::size_t parts = parts_of(payload_.size());
  if (!has_slot() || !has_room(parts)) return;
  Source source{.payload = payload_};
  bool pinned = true;
  for (std::size_t i = 0; i < queues_.rails() && pinned; ++i) {
    const std::optional<Keys> keys = queues_.rail(i).device->keys_of(payload_);
    pinned = keys.has_value();
    if (pinned) source.keys[i] = keys->local;
  }
  if (!pinned) {
    std::byte* const staging = queues_.memory().data() + layout_.staging(next_);
    if (!payload_.empty()) std::memcpy(staging, payload_.data(), payload_.size());
    source = {.payload = {staging, payload_.size()}, .staged = true};
  }
  const std::size_t last = next_;
  post(source, tag_, landing(payload_.size()), pinned);
  direct_ = pinned ? Direct::flying : Direct::none;
  if (pinned)
    for (std::size_t i = 0; i < queues_.count(); ++i) flying_[i] = queues_.posted(i);
  payload_ = {};
  expects(next_ == last + 1, "one message at a time");
}

// The peer's offer, if it is for the next message and large enough.
std::optional<Offer> Sender::landing(std::size_t bytes) const {
  if (offered_ != next_) return std::nullopt;
  Offer offer;
  std::memcpy(&offer, queues_.memory().data() + layout_.offer(next_), sizeof offer);
  return offer.number == next_ && offer.length >= bytes ? std::optional(offer) : std::nullopt;
}

std::size_t Sender::parts_of(std::size_t bytes) const { return std::clamp<std::size_t>(bytes / kLeastPart, 1, queues_.count()); }

bool Sender::has_room(std::size_t parts) const {
  for (std::size_t part = 0; part < parts; ++part)
    if (!queues_.has_room(queue_of(part), part == 0 ? 2 : 1)) return false;
  return true;
}

// The first part goes with the header, which is told last of what its queue carries; every other part is told by itself.
void Sender::post(const Source& source, link::Tag tag, const std::optional<Offer>& landing, bool told) {
  const std::size_t bytes = source.payload.size();
  const std::size_t parts = parts_of(bytes);
  std::byte* const header_at = queues_.memory().data() + layout_.staging(next_) - sizeof(Header);
  const Header header{.tag = tag.value,
                      .length = static_cast<std::uint32_t>(bytes),
                      .released = static_cast<std::uint32_t>(receiver_.tell_released()),
                      .parts = static_cast<std::uint16_t>(parts),
                      .landed = static_cast<std::uint16_t>(landing ? 1 : 0)};
  std::memcpy(header_at, &header, sizeof header);

  const std::uint64_t slot = queues_.peer_memory() + layout_.slot(next_);
  const std::uint64_t to = landing ? landing->address : slot;
  const std::size_t each = (bytes / parts + 63) / 64 * 64;  // the last part may be shorter
  for (std::size_t part = parts; part-- > 0;) {
    const std::size_t begin = std::min(part * each, bytes);
    const std::size_t end = part + 1 == parts ? bytes : std::min(begin + each, bytes);
    const std::size_t queue = queue_of(part);
    const std::uint32_t slot_key = queues_.peer_key(queue);
    Posting payload{.from = source.payload.subspan(begin, end - begin),
                    .to = to + begin,
                    .remote_key = landing ? landing->keys[queues_.peer_rail(queue)] : slot_key,
                    .counts = true,
                    .told = told};
    if (!source.staged) payload.local_key = source.keys[queues_.rail_of(queue)];
    if (part > 0) {
      payload.immediate = immediate(Kind::part, next_);
      queues_.post(queue, payload);
      continue;
    }
    Posting head{.from = {header_at, sizeof header},
                 .to = slot - sizeof header,
                 .remote_key = slot_key,
                 .immediate = immediate(Kind::message, next_),
                 .counts = true,
                 .told = told};
    if (source.staged && !landing)  // both lie as they shall lie there
      head.from = {header_at, sizeof header + end};
    else if (end > begin)
      queues_.post(queue, payload);
    queues_.post(queue, head);
  }
  ++next_;
}

void Sender::note_released(std::uint64_t count) {
  // Told more than once, by headers and alone, and by several queues in any order.
  if (count > next_) {
    complaint_ = fmt::format("has released {} messages of {}", count, next_);
    return;
  }
  released_ = std::max(released_, count);
}

void Sender::take_offer(std::uint32_t immediate) {
  const std::uint64_t number = count_of(immediate, next_);
  if (number <= next_) offered_ = number;  // an older one is of no use, and does no harm
}

}  // namespace shoal::transports::verbs
