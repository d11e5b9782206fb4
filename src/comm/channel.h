// SPDX-License-Identifier: Apache-2.0
// An authenticated stream of messages: a connected, non-blocking descriptor after its handshake, with frames in both directions
// and what waits to be written. Nothing blocks. One owner, one thread at a time.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "comm/fork_guard.h"
#include "comm/frame.h"
#include "comm/messages.h"
#include "core/status.h"
#include "link/handshake.h"
#include "link/link.h"
#include "link/socket.h"

namespace shoal::comm {

using Payload = std::shared_ptr<const std::vector<std::byte>>;  // shared: a table goes to all ranks, and is kept once

class Channel {
 public:
  // `shaken` has succeeded; `max_payload` bounds what is accepted.
  Channel(link::Handshake shaken, Side self, std::size_t max_payload);

  void send(Payload payload);
  void send(const Message& message) { send(std::make_shared<const std::vector<std::byte>>(encode(message))); }
  // Writes and reads what can be now.
  void progress();
  // Only writes.
  void flush();
  // The next message that has arrived. An error is for good: the peer sends nonsense.
  Result<std::optional<std::vector<std::byte>>> next() { return decoder_.next(); }
  // The peer is gone; what it sent before may still be in next().
  bool closed() const { return closed_; }
  bool flushed() const { return outgoing_.empty(); }
  link::Wakeup wakeup() const;
  const link::Key& session_key() const { return session_; }
  link::StreamEnds ends() const { return link::ends_of(stream_); }

 private:
  void read();

  link::Descriptor stream_;
  ForkGuard guard_;  // of stream_
  link::Key session_;
  FrameEncoder encoder_;
  FrameDecoder decoder_;
  std::deque<Payload> outgoing_;  // headers and payloads in turn
  std::size_t written_ = 0;       // bytes of outgoing_.front()
  bool closed_ = false;
};

}  // namespace shoal::comm
