// SPDX-License-Identifier: Apache-2.0
#include "comm/channel.h"

#include <poll.h>

#include <array>
#include <utility>

namespace shoal::comm {
Channel::Channel(link::Handshake shaken, Side self, std::size_t max_payload)
    : stream_(shaken.take_stream()),
      guard_(stream_.get()),
      session_(shaken.session_key()),
      encoder_(session_, self),
      decoder_(session_, self == Side::client ? Side::server : Side::client, max_payload) {
  link::expect_prompt_peer(stream_);
}

void Channel::send(Payload payload) {
  if (closed_) return;
  const std::array<std::byte, kFrameHeader> header = encoder_.header(*payload);
  outgoing_.push_back(std::make_shared<const std::vector<std::byte>>(header.begin(), header.end()));
  if (!payload->empty()) outgoing_.push_back(std::move(payload));
}

void Channel::progress() {
  if (closed_) return;
  flush();
  read();
}

void Channel::flush() {
  if (closed_) return;
  while (!outgoing_.empty()) {
    const std::vector<std::byte>& front = *outgoing_.front();
    const link::Transfer done = link::write_some(stream_.get(), std::span(front).subspan(written_));
    if (done.closed) {  // what the peer sent before it went may still be readable: read() finds the end
      outgoing_.clear();
      written_ = 0;
      return;
    }
    if (done.bytes == 0) return;
    written_ += done.bytes;
    if (written_ < front.size()) continue;
    outgoing_.pop_front();
    written_ = 0;
  }
}

void Channel::read() {
  std::array<std::byte, 16 << 10> piece;
  for (int round = 0; round < 64; ++round) {  // bounded, so that one peer cannot keep the others waiting
    const link::Transfer done = link::read_some(stream_.get(), piece);
    if (done.bytes > 0) decoder_.feed(std::span(piece).first(done.bytes));
    if (done.closed) closed_ = true;
    if (done.closed || done.bytes < piece.size()) return;
  }
}

link::Wakeup Channel::wakeup() const {
  if (closed_) return {};
  return {stream_.get(), static_cast<short>(outgoing_.empty() ? POLLIN : POLLIN | POLLOUT), false};
}

}  // namespace shoal::comm
