// SPDX-License-Identifier: Apache-2.0
// A link between two processes of one host: a ring of messages each way in one memory file that both map, each other's doorbell
// page, and the UNIX stream over which they met. Nothing passes over the stream any more: its end is the peer's end.
// Driven by one thread. What the peer writes is not trusted (see ring.h).
#pragma once

#include <span>
#include <string_view>
#include <utility>

#include "link/doorbell.h"
#include "link/link.h"
#include "link/memory_file.h"
#include "link/ring.h"

namespace shoal::transports {

// The two rings in one mapping; the connecting side sends through the first.
struct RingPair {
  link::RingShape shape;

  Bytes bytes() const { return {2 * shape.bytes()}; }
  std::span<std::byte> from_connecting(std::span<std::byte> memory) const { return memory.first(shape.bytes()); }
  std::span<std::byte> from_accepting(std::span<std::byte> memory) const { return memory.subspan(shape.bytes(), shape.bytes()); }
};

class ShmLink final : public link::Link {
 public:
  ShmLink(const RingPair& pair, link::Mapping memory, link::DoorbellPage peers_page, link::Mapping peers_window,
          link::Descriptor stream, bool connecting, const link::PeerIdentity& peer);

  std::span<std::byte> acquire(Bytes n) override { return outgoing_.acquire(n); }
  void commit(link::Tag tag) override {
    outgoing_.commit(tag);
    peers_doorbell_.ring();
  }
  const link::Message* front() override { return incoming_.front(); }
  void release() override {
    if (incoming_.release(&peers_doorbell_)) peers_doorbell_.ring();
  }

  void progress() override {}
  bool flushed() override { return true; }  // the peer maps what is committed, whether we live or not
  Status health() override;

  link::Wakeup wakeup() const override;
  std::span<std::byte> window() const override { return peers_window_.memory(); }
  void ring() override { peers_doorbell_.ring(); }
  Bytes max_message() const override { return max_message_; }
  std::string_view transport() const override { return "shm"; }

 private:
  link::Mapping memory_;
  link::DoorbellPage peers_page_;
  link::Doorbell& peers_doorbell_;
  link::Mapping peers_window_;
  link::Descriptor stream_;
  link::PeerIdentity peer_;
  Bytes max_message_;
  link::RingProducer outgoing_;
  link::RingConsumer incoming_;
};

}  // namespace shoal::transports
