// SPDX-License-Identifier: Apache-2.0
#include "transports/tcp/sender.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "core/expects.h"

namespace shoal::transports {
namespace {

constexpr std::size_t kFramesPerCall = 16;
// Payloads stay where memory that comes in whole lines has put them.
constexpr std::size_t kHeaderLine = 64;

iovec piece(const void* start, std::size_t bytes) { return {const_cast<void*>(start), bytes}; }

}  // namespace

Sender::Sender(int stream, Bytes max_message, int credits)
    : stream_(stream),
      max_message_(max_message.value),
      slots_(static_cast<std::size_t>(credits)),
      stride_(kHeaderLine + max_message_),
      wire_(std::make_unique_for_overwrite<std::byte[]>(slots_ * stride_)),
      frames_(slots_ + 1) {}

std::span<std::byte> Sender::acquire(Bytes n) {
  expects(n.value <= max_message_, "a message is at most max_message bytes");
  refused_eager_ = eager_queued_ == slots_;
  if (refused_eager_) return {};
  // An idle link keeps using the first slot, whose pages and cache lines are warm.
  if (eager_queued_ == 0) slot_ = 0;
  acquired_ = {wire_.get() + slot_ * stride_ + kHeaderLine, n.value};
  return acquired_;
}

void Sender::commit(link::Tag tag) {
  expects(acquired_.data() != nullptr, "commit follows an acquire that gave memory");
  const FrameHeader header{.tag = tag.value, .length = acquired_.size()};
  std::byte* const start = acquired_.data() - kFrameHeader;
  std::memcpy(start, &header, kFrameHeader);
  enqueue({.body = {start, kFrameHeader + acquired_.size()}});
  acquired_ = {};
  ++eager_queued_;
  if (++slot_ == slots_) slot_ = 0;
  flush();
}

bool Sender::send_direct(std::span<const std::byte> payload, link::Tag tag) {
  expects(payload.size() <= max_message_, "a message is at most max_message bytes");
  if (direct_queued_) return false;
  enqueue({.header = {.tag = tag.value, .length = payload.size()}, .body = payload, .direct = true});
  direct_queued_ = true;
  flush();
  return true;
}

void Sender::enqueue(const Frame& frame) {
  std::size_t place = oldest_ + queued_;
  if (place >= frames_.size()) place -= frames_.size();
  frames_[place] = frame;
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
  for (std::size_t i = 0, frame = oldest_; i < queued_; ++i, frame = after(frame)) bytes += frames_[frame].bytes();
  return bytes - taken_;
}

std::size_t Sender::send_some() {
  std::array<iovec, 2 * kFramesPerCall> pieces;
  std::size_t count = 0;
  std::size_t skip = taken_;
  for (std::size_t i = 0, frame = oldest_; i < std::min(queued_, kFramesPerCall); ++i, frame = after(frame)) {
    const Frame& next = frames_[frame];
    if (skip < next.head()) pieces[count++] = piece(reinterpret_cast<const std::byte*>(&next.header) + skip, next.head() - skip);
    const std::size_t body_skip = skip - std::min(skip, next.head());
    if (body_skip < next.body.size()) pieces[count++] = piece(next.body.data() + body_skip, next.body.size() - body_skip);
    skip = 0;
  }
  constexpr int kFlags = MSG_NOSIGNAL | MSG_DONTWAIT;
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = count;
  ssize_t sent = 0;
  do  // of a small message the kernel takes a tenth of its time to fetch a list of one piece
    sent = count == 1 ? ::send(stream_, pieces[0].iov_base, pieces[0].iov_len, kFlags) : ::sendmsg(stream_, &message, kFlags);
  while (sent < 0 && errno == EINTR);
  if (sent >= 0) return static_cast<std::size_t>(sent);
  if (errno != EAGAIN && errno != EWOULDBLOCK && errno != ENOBUFS && errno != ENOMEM) error_ = errno;
  return 0;
}

void Sender::advance(std::size_t bytes) {
  taken_ += bytes;
  while (queued_ != 0 && taken_ >= frames_[oldest_].bytes()) {
    const Frame& done = frames_[oldest_];
    taken_ -= done.bytes();
    if (done.direct)
      direct_queued_ = false;
    else
      --eager_queued_;
    oldest_ = after(oldest_);
    --queued_;
  }
}

}  // namespace shoal::transports
