// SPDX-License-Identifier: Apache-2.0
// A link over a TCP stream: a queue of messages to send, and a cutter of what comes. Bytes move when the thread that drives the
// link commits, asks for the front, or calls progress. A payload can go from and to user memory without a copy through wire
// memory.
#pragma once

#include <span>
#include <string_view>
#include <utility>

#include "link/link.h"
#include "transports/tcp/receiver.h"
#include "transports/tcp/sender.h"

namespace shoal::transports {

class TcpLink final : public link::Link, private link::Direct {
 public:
  TcpLink(const link::Endpoint& self, const link::PeerIdentity& peer, link::Descriptor stream);

  std::span<std::byte> acquire(Bytes n) override { return sender_.acquire(n); }
  void commit(link::Tag tag) override { sender_.commit(tag); }
  const link::Message* front() override;
  void release() override { receiver_.release(); }

  void progress() override;
  bool flushed() override { return sender_.is_empty(); }
  Status health() override;

  link::Wakeup wakeup() const override;
  link::Direct* direct() override { return this; }
  Bytes max_message() const override { return max_message_; }
  std::string_view transport() const override { return "tcp"; }

 private:
  bool send(std::span<const std::byte> payload, link::Tag tag) override { return sender_.send_direct(payload, tag); }
  bool sent() override { return !sender_.has_direct(); }
  void expect(std::span<std::byte> target) override { receiver_.expect(target); }

  Status why_ended() const;

  link::Descriptor stream_;
  link::PeerIdentity peer_;
  Bytes max_message_;
  Sender sender_;
  Receiver receiver_;
  bool looked_ = false;  // progress() has just found nothing: front() need not ask the kernel again
};

}  // namespace shoal::transports
