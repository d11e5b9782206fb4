// SPDX-License-Identifier: Apache-2.0
// A link between two ranks of one process: a ring of messages each way in memory that both ends own.
//
// The Channel is what the two share; an End is one rank's hold on it, kept by its connection and then by its link. Each thread
// drives its own end. An end may go at any time: it takes its doorbell with it, and the other end sees that it has left.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <span>
#include <string_view>

#include "link/link.h"
#include "link/ring.h"

namespace shoal::transports {

// One end as the other sees it. On a line of its own: the two ends ring each other at every message.
class alignas(link::kCacheLine) Presence {
 public:
  // This end. leave() returns when the other end is not inside ring() and will not touch the doorbell any more.
  void arrive(link::Doorbell* doorbell, std::shared_ptr<link::Window> window);
  void leave();
  // The other end.
  bool has_arrived() const { return state_.load(std::memory_order_seq_cst) != State::awaited; }
  bool has_left() const { return state_.load(std::memory_order_seq_cst) == State::left; }
  void ring();
  // Once the other end has arrived.
  std::span<std::byte> window() const { return window_ == nullptr ? std::span<std::byte>() : window_->memory(); }

 private:
  enum class State : int { awaited, here, left };
  std::atomic<State> state_{State::awaited};
  std::atomic<bool> ringing_{false};  // pairs with state_: either ring() sees that the end has left, or leave() sees the ringing
  link::Doorbell* doorbell_ = nullptr;
  std::shared_ptr<link::Window> window_;  // opened; kept for the other end when this one has left
};

struct Channel {
  explicit Channel(const link::RingShape& shape);
  std::span<std::byte> ring(int sender) const;

  struct alignas(link::kCacheLine) Line {
    std::array<std::byte, link::kCacheLine> bytes;
  };
  link::RingShape shape;
  std::unique_ptr<Line[]> memory;  // two rings; a data area costs no page until a message needs it
  std::array<Presence, 2> presence;
};

// End 0 came first, end 1 second.
class End {
 public:
  End(std::shared_ptr<Channel> channel, int number, link::Doorbell* doorbell, std::shared_ptr<link::Window> window);
  End(End&&) noexcept = default;
  End& operator=(End&&) = delete;
  ~End();

  const Channel& channel() const { return *channel_; }
  std::span<std::byte> outgoing() const { return channel_->ring(number_); }
  std::span<std::byte> incoming() const { return channel_->ring(1 - number_); }
  Presence& other() const { return channel_->presence[static_cast<std::size_t>(1 - number_)]; }

 private:
  std::shared_ptr<Channel> channel_;
  int number_;
};

class LoopbackLink final : public link::Link {
 public:
  LoopbackLink(End end, const link::PeerIdentity& peer)
      : end_(std::move(end)),
        peer_(peer),
        outgoing_(end_.outgoing(), end_.channel().shape),
        incoming_(end_.incoming(), end_.channel().shape) {}

  std::span<std::byte> acquire(Bytes n) override { return outgoing_.acquire(n); }
  void commit(link::Tag tag) override {
    outgoing_.commit(tag);
    end_.other().ring();
  }
  const link::Message* front() override { return incoming_.front(); }
  void release() override {
    if (incoming_.release(nullptr)) end_.other().ring();
  }

  void progress() override {}
  bool flushed() override { return true; }  // what is committed lies in memory that the peer owns too
  Status health() override;

  link::Wakeup wakeup() const override { return {.rings_doorbell = true}; }
  std::span<std::byte> window() const override { return end_.other().window(); }
  void ring() override { end_.other().ring(); }
  Bytes max_message() const override { return end_.channel().shape.max_message; }
  std::string_view transport() const override { return "loopback"; }

 private:
  End end_;
  link::PeerIdentity peer_;
  link::RingProducer outgoing_;
  link::RingConsumer incoming_;
};

}  // namespace shoal::transports
