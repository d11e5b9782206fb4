// SPDX-License-Identifier: Apache-2.0
#include "transports/tcp/receiver.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "core/expects.h"

namespace shoal::transports {
namespace {

// From here on, an expected message is worth a system call of its own for its header, so that its payload is not copied.
constexpr std::size_t kWorthLanding = 8 << 10;
// Of messages that are not known to be long: several with one system call.
constexpr std::size_t kReadAhead = 64 << 10;

}  // namespace

// Room for two messages: one in pieces is moved to the start at most once for each message that has passed.
Receiver::Receiver(int stream, Bytes max_message)
    : stream_(stream),
      max_message_(max_message.value),
      capacity_(2 * (max_message_ + kFrameHeader) + kFrameHeader),
      staging_(std::make_unique_for_overwrite<std::byte[]>(capacity_)) {}

const link::Message* Receiver::front() { return parse() ? &message_ : nullptr; }

bool Receiver::parse() {
  if (complete_) return true;
  if (state_ == State::malformed) return false;
  if (!parsed_) {
    if (tail_ - head_ < kFrameHeader) return false;
    std::memcpy(&header_, staging_.get() + head_, kFrameHeader);
    if (header_.magic != FrameHeader::kMagic || header_.length > max_message_) {
      state_ = State::malformed;
      return false;
    }
    parsed_ = true;
  }
  const std::size_t here = landing_ ? landed_ : tail_ - payload_start();
  if (here < header_.length) return false;
  const std::byte* payload = landing_ ? target_.data() : staging_.get() + payload_start();
  message_ = {.payload = {payload, header_.length}, .tag = {header_.tag}};
  complete_ = true;
  return true;
}

void Receiver::release() {
  expects(complete_, "release follows a front that gave a message");
  head_ = payload_start() + (landing_ ? 0 : header_.length);
  if (tail_ - head_ <= kFrameHeader) move_to_start();  // keeps using the same warm pages
  parsed_ = complete_ = landing_ = false;
  landed_ = 0;
  target_ = {};
}

void Receiver::fill() {
  while (state_ == State::open && !parse()) {
    if (state_ != State::open) return;
    make_room();
    if (parsed_ && !landing_ && header_.length >= kWorthLanding && target_.size() >= header_.length) start_landing();
    if (!read_once()) return;
  }
}

// After this, the rest of the oldest message and one more header fit behind tail_.
void Receiver::make_room() {
  if (head_ != 0 && capacity_ - head_ < max_message_ + 2 * kFrameHeader) move_to_start();
}

void Receiver::move_to_start() {
  std::memmove(staging_.get(), staging_.get() + head_, tail_ - head_);
  tail_ -= head_;
  head_ = 0;
}

void Receiver::start_landing() {
  landing_ = true;
  landed_ = tail_ - payload_start();
  std::memcpy(target_.data(), staging_.get() + payload_start(), landed_);
  tail_ = payload_start();
}

void Receiver::expect(std::span<std::byte> target) {
  if (landing_) take_back();
  target_ = target;
}

void Receiver::take_back() {
  std::byte* payload = staging_.get() + payload_start();
  std::memmove(payload + landed_, payload, tail_ - payload_start());  // at most the next header, see read_once
  std::memcpy(payload, target_.data(), landed_);
  tail_ += landed_;
  landing_ = complete_ = false;
  landed_ = 0;
}

// What is asked for decides where bytes end up. A payload that lands: its rest, and the next header so that the next payload can
// land too. A long message that is expected: its header alone. The rest of a long one, and the next header. Else: what there is,
// up to kReadAhead. More would lie in memory that has left the cache, and would have to be moved if its end is not there yet.
bool Receiver::read_once() {
  std::array<iovec, 2> pieces{};
  std::size_t asked = 0;
  std::size_t count = 0;
  const auto ask = [&](std::byte* where, std::size_t bytes) {
    pieces[count++] = {where, bytes};
    asked += bytes;
  };
  if (landing_) ask(target_.data() + landed_, header_.length - landed_);
  const bool header_alone = landing_ || (!parsed_ && target_.size() >= kWorthLanding);
  const bool long_one = parsed_ && header_.length >= kWorthLanding;
  const std::size_t wanted = header_alone ? kFrameHeader
                             : long_one   ? kFrameHeader + header_.length + kFrameHeader
                                          : kFrameHeader + std::min(max_message_, kReadAhead) + kFrameHeader;
  ask(staging_.get() + tail_, wanted - (tail_ - (landing_ ? payload_start() : head_)));

  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = count;
  ssize_t got = 0;
  do  // asked in vain again and again while a message is awaited: one piece costs less without a list
    got = count == 1 ? ::recv(stream_, pieces[0].iov_base, pieces[0].iov_len, MSG_DONTWAIT)
                     : ::recvmsg(stream_, &message, MSG_DONTWAIT);
  while (got < 0 && errno == EINTR);
  if (got < 0) {
    if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
    state_ = State::broken;
    error_ = errno;
    return false;
  }
  if (got == 0) {
    state_ = State::closed;
    return false;
  }
  std::size_t came = static_cast<std::size_t>(got);
  const bool all = came == asked;
  if (landing_) {
    const std::size_t into_target = std::min(came, header_.length - landed_);
    landed_ += into_target;
    came -= into_target;
  }
  tail_ += came;
  return all;
}

}  // namespace shoal::transports
