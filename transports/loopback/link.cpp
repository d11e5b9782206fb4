// SPDX-License-Identifier: Apache-2.0
#include "transports/loopback/link.h"

#include <thread>
#include <utility>

#include "transports/peer_status.h"

namespace shoal::transports {

void Presence::arrive(link::Doorbell* doorbell, std::shared_ptr<link::Window> window) {
  doorbell_ = doorbell;
  window_ = std::move(window);
  state_.store(State::here, std::memory_order_seq_cst);
}

void Presence::leave() {
  state_.store(State::left, std::memory_order_seq_cst);
  while (ringing_.load(std::memory_order_seq_cst)) std::this_thread::yield();  // a ring takes no longer than a system call
}

void Presence::ring() {
  ringing_.store(true, std::memory_order_seq_cst);
  if (state_.load(std::memory_order_seq_cst) == State::here && doorbell_ != nullptr) doorbell_->ring();
  ringing_.store(false, std::memory_order_release);
}

Channel::Channel(const link::RingShape& ring_shape)
    : shape(ring_shape), memory(std::make_unique_for_overwrite<Line[]>(2 * shape.bytes() / link::kCacheLine)) {
  link::prepare_ring(ring(0), shape);
  link::prepare_ring(ring(1), shape);
}

std::span<std::byte> Channel::ring(int sender) const {
  return {memory[0].bytes.data() + static_cast<std::size_t>(sender) * shape.bytes(), shape.bytes()};
}

End::End(std::shared_ptr<Channel> channel, int number, link::Doorbell* doorbell, std::shared_ptr<link::Window> window)
    : channel_(std::move(channel)), number_(number) {
  channel_->presence[static_cast<std::size_t>(number_)].arrive(doorbell, std::move(window));
  other().ring();
}

End::~End() {
  if (!channel_) return;  // moved on
  channel_->presence[static_cast<std::size_t>(number_)].leave();
  other().ring();
}

Status LoopbackLink::health() {
  if (!end_.other().has_left()) return {};
  // It published its last message before it left.
  if (incoming_.front() != nullptr && !outgoing_.is_starving()) return {};
  return peer_failure(transport(), peer_, "has left");
}

}  // namespace shoal::transports
