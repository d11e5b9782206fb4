// SPDX-License-Identifier: Apache-2.0
// A link over UCX. The stream that carried the handshake stays: credits come back on it, and its end is the peer's. See frame.h
// for what is said, worker.h for what links share.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>

#include "link/link.h"
#include "link/socket.h"
#include "transports/ucx/lane.h"
#include "transports/ucx/window.h"
#include "transports/ucx/worker.h"

namespace shoal::transports::ucx {

class UcxLink final : public link::Link, private link::Direct {
 public:
  // The lane is open, greeted, and attached to the worker; the stream carries nothing but credits from here on.
  UcxLink(Bytes max_message, int credits, const link::PeerIdentity& peer, std::shared_ptr<Worker> worker,
          std::unique_ptr<Lane> lane, link::Descriptor stream, link::Descriptor poll);
  UcxLink(const UcxLink&) = delete;
  UcxLink& operator=(const UcxLink&) = delete;
  ~UcxLink() override;

  std::span<std::byte> acquire(Bytes n) override { return lane_->sender().acquire(n); }
  void commit(link::Tag tag) override { lane_->sender().commit(tag, tell_along()); }
  const link::Message* front() override { return lane_->receiver().front(); }
  void release() override;
  void progress() override;
  bool needs_progress() const override { return true; }
  bool flushed() override;
  Status health() override;
  link::Wakeup wakeup() const override;
  link::Direct* direct() override { return this; }
  Bytes max_message() const override { return max_message_; }
  std::string_view transport() const override { return "ucx"; }

 private:
  using Clock = std::chrono::steady_clock;

  bool send(std::span<const std::byte> payload, link::Tag tag) override {
    return !lane_->sender().has_direct() && lane_->sender().send_direct(payload, tag, tell_along());
  }
  bool sent() override { return !lane_->sender().has_direct(); }
  void expect(std::span<std::byte> target) override { lane_->receiver().expect(target); }

  std::uint32_t tell_along() { return told_ = lane_->receiver().released(); }
  bool owes() const { return lane_->receiver().released() - told_ > slack_; }
  void tell();        // on the stream
  void hear() const;  // from the stream
  void note_end(int error) const;
  Status why_ended() const;

  std::shared_ptr<Worker> worker_;
  std::unique_ptr<Lane> lane_;
  link::PeerIdentity peer_;
  Bytes max_message_;
  std::uint32_t slack_;
  std::uint32_t told_ = 0;  // what the peer knows, or will, of released()
  link::Descriptor stream_;
  link::Descriptor poll_;  // readable when the worker has news, or the stream

  // The stream is also read where a sleeper looks what to sleep on.
  mutable std::array<std::byte, 4> heard_{};  // a credit in pieces
  mutable std::size_t heard_bytes_ = 0;
  mutable bool ended_ = false;
  mutable int error_ = 0;  // errno of a broken stream
  mutable Clock::time_point ended_at_{};
};

// A descriptor that polls readable when one of these does.
Result<link::Descriptor> poll_all(std::initializer_list<int> descriptors);

}  // namespace shoal::transports::ucx
