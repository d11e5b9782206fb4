// SPDX-License-Identifier: Apache-2.0
#include "transports/tcp/sender.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "core/expects.h"

namespace shoal::transports {
namespace {

constexpr std::size_t kFramesPerCall = 16;

iovec piece(const void* start, std::size_t bytes) { return {const_cast<void*>(start), bytes}; }

}  // namespace

Sender::Sender(int stream, Bytes max_message, int credits)
    : stream_(stream),
      max_message_(max_message.value),
      slots_(static_cast<std::size_t>(credits)),
      // One byte more: an empty message of a link without payloads has an address too.
      wire_(std::make_unique_for_overwrite<std::byte[]>(slots_ * max_message_ + 1)),
      frames_(slots_ + 1) {}

std::span<std::byte> Sender::acquire(Bytes n) {
  expects(n.value <= max_message_, "a message is at most max_message bytes");
  refused_eager_ = eager_queued_ == slots_;
  if (refused_eager_) return {};
  // An idle link keeps using the first slot, whose pages and cache lines are warm.
  if (eager_queued_ == 0) slot_ = 0;
  acquired_ = {wire_.get() + slot_ * max_message_, n.value};
  return acquired_;
}

void Sender::commit(link::Tag tag) {
  expects(acquired_.data() != nullptr, "commit follows an acquire that gave memory");
  enqueue(acquired_, tag, false);
  acquired_ = {};
  ++eager_queued_;
  if (++slot_ == slots_) slot_ = 0;
  flush();
}

bool Sender::send_direct(std::span<const std::byte> payload, link::Tag tag) {
  expects(payload.size() <= max_message_, "a message is at most max_message bytes");
  if (direct_queued_) return false;
  enqueue(payload, tag, true);
  direct_queued_ = true;
  flush();
  return true;
}

void Sender::enqueue(std::span<const std::byte> payload, link::Tag tag, bool direct) {
  std::size_t frame = oldest_ + queued_;
  if (frame >= frames_.size()) frame -= frames_.size();
  frames_[frame] = {.header = {.tag = tag.value, .length = payload.size()}, .payload = payload, .direct = direct};
  ++queued_;
}

void Sender::flush() {
  while (queued_ != 0 && error_ == 0) {
    const std::size_t offered = unsent();
    const std::size_t taken = send_some();
    advance(taken);
    if (taken < offered) return;  // the socket's buffer is full, or there are more frames than one call takes: progress goes on
  }
}

std::size_t Sender::unsent() const {
  std::size_t bytes = 0;
  for (std::size_t i = 0, frame = oldest_; i < queued_; ++i, frame = after(frame))
    bytes += kFrameHeader + frames_[frame].payload.size();
  return bytes - taken_;
}

std::size_t Sender::send_some() {
  std::array<iovec, 2 * kFramesPerCall> pieces;
  std::size_t count = 0;
  std::size_t skip = taken_;
  for (std::size_t i = 0, frame = oldest_; i < std::min(queued_, kFramesPerCall); ++i, frame = after(frame)) {
    const Frame& next = frames_[frame];
    if (skip < kFrameHeader)
      pieces[count++] = piece(reinterpret_cast<const std::byte*>(&next.header) + skip, kFrameHeader - skip);
    const std::size_t payload_skip = skip - std::min(skip, kFrameHeader);
    if (payload_skip < next.payload.size())
      pieces[count++] = piece(next.payload.data() + payload_skip, next.payload.size() - payload_skip);
    skip = 0;
  }
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = count;
  ssize_t sent = 0;
  do sent = ::sendmsg(stream_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  while (sent < 0 && errno == EINTR);
  if (sent >= 0) return static_cast<std::size_t>(sent);
  if (errno != EAGAIN && errno != EWOULDBLOCK && errno != ENOBUFS && errno != ENOMEM) error_ = errno;
  return 0;
}

void Sender::advance(std::size_t bytes) {
  taken_ += bytes;
  while (queued_ != 0 && taken_ >= kFrameHeader + frames_[oldest_].payload.size()) {
    const Frame& done = frames_[oldest_];
    taken_ -= kFrameHeader + done.payload.size();
    if (done.direct)
      direct_queued_ = false;
    else
      --eager_queued_;
    oldest_ = after(oldest_);
    --queued_;
  }
}

}  // namespace shoal::transports
