// SPDX-License-Identifier: Apache-2.0
// A link over reliable queue pairs. The devices move the bytes; this thread posts, and looks for what has come. To sleep there is
// one descriptor for the completion channels of all rails and the handshake's stream, whose end is the peer's.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "link/link.h"
#include "transports/verbs/queues.h"
#include "transports/verbs/receiver.h"
#include "transports/verbs/sender.h"

namespace shoal::transports {

class VerbsLink final : public link::Link, private link::Direct {
 public:
  // `queues` is joined; `news` becomes readable when the stream ends, or with what queues.arm() waits for.
  VerbsLink(const link::PeerIdentity& peer, const verbs::Layout& layout, std::unique_ptr<verbs::Queues> queues,
            link::Descriptor stream, link::Descriptor news);

  std::span<std::byte> acquire(Bytes n) override;
  void commit(link::Tag tag) override { sender_.commit(tag); }
  const link::Message* front() override;
  void release() override { receiver_.release(); }

  void progress() override;
  bool needs_progress() const override { return true; }
  bool flushed() override;
  Status health() override;

  // Arms the completion channels, for whoever asks is about to sleep.
  link::Wakeup wakeup() const override;
  link::Direct* direct() override { return this; }
  Bytes max_message() const override { return {layout_.max_message()}; }
  std::string_view transport() const override { return "verbs"; }

 private:
  bool send(std::span<const std::byte> payload, link::Tag tag) override;
  bool sent() override;
  void expect(std::span<std::byte> target) override { receiver_.expect(target); }

  bool poll() const;
  void take(std::uint32_t immediate) const;
  bool has_ended();
  Status why_ended() const;

  const link::PeerIdentity peer_;
  const verbs::Layout layout_;
  const link::Descriptor stream_;
  const link::Descriptor news_;
  const std::unique_ptr<verbs::Queues> queues_;
  mutable verbs::Receiver receiver_;
  mutable verbs::Sender sender_;
  mutable std::string complaint_;  // of immediates that mean nothing
  std::string closed_;             // how the stream ended
  unsigned unflushed_ = 0;         // looks in a row
};

}  // namespace shoal::transports
