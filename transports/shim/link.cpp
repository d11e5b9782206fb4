// SPDX-License-Identifier: Apache-2.0
#include "transports/shim/link.h"

#include <poll.h>

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "core/expects.h"

namespace shoal::transports {

using Clock = Pace::Clock;
static_assert(std::is_same_v<Clock::duration, std::chrono::nanoseconds>);

namespace {

constexpr std::int64_t kLast_ns = std::int64_t{1} << 62;  // half of what the clock can say: sums of two do not overflow

}  // namespace

ShimLink::ShimLink(std::unique_ptr<link::Link> inner, Pace& pace, bool shares_clock, Bytes most_held)
    : inner_(std::move(inner)),
      pace_(pace),
      most_held_(most_held),
      ahead_(shares_clock ? std::chrono::nanoseconds(0) : std::chrono::nanoseconds::max()) {}

std::span<std::byte> ShimLink::acquire(Bytes n) {
  acquired_ = inner_->acquire({n.value + kShimTrailer});
  refused_ = acquired_.data() == nullptr;
  return refused_ ? std::span<std::byte>() : acquired_.first(n.value);
}

void ShimLink::commit(link::Tag tag) {
  expects(acquired_.data() != nullptr, "commit follows an acquire that gave memory");
  const std::size_t size = acquired_.size() - kShimTrailer;
  const Clock::time_point now = Clock::now();
  const ShimTrailer trailer{.sent_ns = now.time_since_epoch().count(),
                            .due_ns = pace_.due(now, {size}).time_since_epoch().count()};
  std::memcpy(acquired_.data() + size, &trailer, sizeof trailer);
  acquired_ = {};
  inner_->commit(tag);
}

const link::Message* ShimLink::front() {
  pull();
  return held_.empty() || held_.front().due > Clock::now() ? nullptr : &held_.front().message;
}

void ShimLink::release() {
  expects(!held_.empty(), "release follows a front that gave a message");
  held_bytes_ -= held_.front().payload.size();
  held_.pop_front();
}

void ShimLink::progress() {
  inner_->progress();
  pull();
}

void ShimLink::pull() {
  while (!is_full()) {
    const link::Message* message = inner_->front();
    if (message == nullptr) return;
    held_.push_back(take(*message));
    held_bytes_ += held_.back().payload.size();
    inner_->release();
  }
}

// What the peer writes is not trusted: a message without a trailer that can be is due at once.
ShimLink::Held ShimLink::take(const link::Message& message) {
  const Clock::time_point now = Clock::now();
  const std::size_t size = message.payload.size() - std::min(message.payload.size(), kShimTrailer);
  Held held{.payload = {message.payload.begin(), message.payload.begin() + static_cast<std::ptrdiff_t>(size)}, .due = now};
  held.message = {.payload = held.payload, .tag = message.tag};
  ShimTrailer trailer;
  if (message.payload.size() >= sizeof trailer) std::memcpy(&trailer, message.payload.data() + size, sizeof trailer);
  if (trailer.sent_ns > 0 && trailer.sent_ns <= trailer.due_ns && trailer.due_ns <= kLast_ns) held.due = due(trailer, now);
  return held;
}

Clock::time_point ShimLink::due(const ShimTrailer& trailer, Clock::time_point now) {
  ahead_ = std::min(ahead_, now - Clock::time_point(std::chrono::nanoseconds(trailer.sent_ns)));
  return Clock::time_point(std::chrono::nanoseconds(trailer.due_ns) + ahead_);
}

// What has come is still delivered, unless the caller waits for room towards a peer that is gone.
Status ShimLink::health() {
  pull();
  return held_.empty() || refused_ ? inner_->health() : Status();
}

link::Wakeup ShimLink::wakeup() const {
  link::Wakeup wakeup = inner_->wakeup();
  // What is not taken out now would end every sleep at once.
  if (is_full() && !wakeup.rings_doorbell) wakeup.events = static_cast<short>(wakeup.events & ~POLLIN);
  if (!held_.empty() && held_.front().due > Clock::now()) wakeup.at = held_.front().due;
  return wakeup;
}

}  // namespace shoal::transports
