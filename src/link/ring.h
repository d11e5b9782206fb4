// SPDX-License-Identifier: Apache-2.0
// A ring of messages in memory that two threads or two processes share: one producer, one consumer, `credits` slots.
//
// Each slot has a control line of one cache line: sequence number (the publish flag), length, tag and, up to kInlinePayload
// bytes, the payload itself, so that a small message costs the transfer of one line. Longer payloads lie in the slot's part of
// the data area. A position is the number of a message, counted from `start`; it wraps after 2^64 messages. Its slot holds
// position + 1 as the sequence once the message is there; nothing is cleared, since the slot's last message had another number.
//
//   producer line | consumer line | control line 0..credits-1 | data 0..credits-1
//
// Whoever wakes the other side does so after commit(), and after release() if that asks for it (see Doorbell). The other side is
// not trusted: what it writes can neither lead outside the memory nor change under a message once front() has shown its length.
//
// RingProducer belongs to the sending thread, RingConsumer to the receiving one; the memory outlives both.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include "core/expects.h"
#include "core/types.h"
#include "link/doorbell.h"
#include "link/link.h"

namespace shoal::link {

inline constexpr std::size_t kCacheLine = 64;
inline constexpr std::size_t kInlinePayload = 40;

// Written by the producer, once it finds the ring full; read by the consumer at every release, so that it stays in its cache.
struct alignas(kCacheLine) RingProducerLine {
  std::atomic<std::uint32_t> starving{0};
};
// Written by the consumer at every release; read by the producer only when the credits that it knows of are used up.
struct alignas(kCacheLine) RingConsumerLine {
  std::atomic<std::uint64_t> released{0};  // position of the oldest message not yet released
};
struct alignas(kCacheLine) RingControlLine {
  std::atomic<std::uint64_t> sequence{0};  // position + 1 of the message in this slot
  std::uint64_t length = 0;                // bytes of payload
  std::uint32_t tag = 0;
  std::uint32_t unused = 0;
  std::array<std::byte, kInlinePayload> payload{};
};
static_assert(sizeof(RingControlLine) == kCacheLine);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// What a ring is made for, and where its parts lie in memory that is aligned to a cache line.
struct RingShape {
  Bytes max_message;
  int credits = 1;

  std::size_t slots() const { return static_cast<std::size_t>(credits); }
  // Of one slot in the data area: whole cache lines, none if every message fits into a control line.
  std::size_t stride() const {
    return max_message.value <= kInlinePayload ? 0 : (max_message.value + kCacheLine - 1) / kCacheLine * kCacheLine;
  }
  std::size_t bytes() const { return data_offset() + slots() * stride(); }

  RingProducerLine* producer(std::span<std::byte> memory) const { return reinterpret_cast<RingProducerLine*>(memory.data()); }
  RingConsumerLine* consumer(std::span<std::byte> memory) const {
    return reinterpret_cast<RingConsumerLine*>(memory.data() + kCacheLine);
  }
  RingControlLine* controls(std::span<std::byte> memory) const {
    return reinterpret_cast<RingControlLine*>(memory.data() + 2 * kCacheLine);
  }
  std::byte* data(std::span<std::byte> memory) const { return memory.data() + data_offset(); }

  friend bool operator==(const RingShape&, const RingShape&) = default;

 private:
  std::size_t data_offset() const { return (2 + slots()) * kCacheLine; }
};

// Makes an empty ring in fresh memory of shape.bytes(), before either side looks at it. The data area stays untouched.
inline void prepare_ring(std::span<std::byte> memory, const RingShape& shape, std::uint64_t start = 0) {
  expects(memory.size() >= shape.bytes() && shape.credits >= 1, "a ring has a slot and memory for all of them");
  std::construct_at(shape.producer(memory));
  std::construct_at(shape.consumer(memory))->released.store(start, std::memory_order_relaxed);
  for (std::size_t i = 0; i < shape.slots(); ++i) {
    // Not start + 1 yet, whatever the start: `start` itself is the number of no message in this ring's first lap.
    std::construct_at(shape.controls(memory) + i)->sequence.store(start, std::memory_order_relaxed);
  }
}

class RingProducer {
 public:
  RingProducer(std::span<std::byte> memory, const RingShape& shape, std::uint64_t start = 0)
      : shape_(shape),
        self_(shape.producer(memory)),
        peer_(shape.consumer(memory)),
        controls_(shape.controls(memory)),
        data_(shape.data(memory)),
        position_(start),
        released_(start) {}

  // As Link::acquire. Small messages are written aside and copied at commit, in one go with the flag: the consumer, which
  // polls the control line, would otherwise take the line away in the middle of filling it.
  std::span<std::byte> acquire(Bytes n) {
    expects(n.value <= shape_.max_message.value, "a message is at most max_message bytes");
    if (is_full()) [[unlikely]]
      if (!look_for_credit()) return {};
    acquired_ = true;
    length_ = n.value;
    return {n.value <= kInlinePayload ? inline_.data() : data_ + slot_ * shape_.stride(), n.value};
  }

  // Publishes. The consumer's doorbell is rung after this.
  void commit(Tag tag) {
    expects(acquired_, "commit follows an acquire that gave memory");
    acquired_ = false;
    RingControlLine& control = controls_[slot_];
    if (length_ <= kInlinePayload) control.payload = inline_;
    control.length = length_;
    control.tag = tag.value;
    control.sequence.store(++position_, std::memory_order_release);  // pairs with RingConsumer::front
    if (++slot_ == shape_.slots()) slot_ = 0;
  }

  // True if the last acquire found no credit and there is still none.
  bool is_starving() const { return starving_ && position_ - peer_->released.load(std::memory_order_seq_cst) >= shape_.slots(); }

 private:
  // A peer's nonsense (more released than sent) is a full ring too.
  bool is_full() const { return position_ - released_ >= shape_.slots(); }

  // Says that credit is wanted before the second look: either that look sees the release, or the releaser sees the wish.
  bool look_for_credit() {
    released_ = peer_->released.load(std::memory_order_seq_cst);  // pairs with RingConsumer::release
    if (is_full() && !starving_) {
      starving_ = true;
      self_->starving.store(1, std::memory_order_seq_cst);
      released_ = peer_->released.load(std::memory_order_seq_cst);
    }
    if (is_full()) return false;
    if (starving_) {
      starving_ = false;
      self_->starving.store(0, std::memory_order_relaxed);  // seen late, it costs a needless ring
    }
    return true;
  }

  RingShape shape_;
  RingProducerLine* self_;
  RingConsumerLine* peer_;
  RingControlLine* controls_;
  std::byte* data_;
  std::uint64_t position_;  // of the next message
  std::uint64_t released_;  // what we know of the consumer's counter
  std::size_t slot_ = 0;    // of the next message: advanced with position_, so that nothing is divided
  std::size_t length_ = 0;  // of the acquired message
  bool acquired_ = false;
  bool starving_ = false;  // what self_->starving says
  std::array<std::byte, kInlinePayload> inline_{};
};

class RingConsumer {
 public:
  RingConsumer(std::span<std::byte> memory, const RingShape& shape, std::uint64_t start = 0)
      : shape_(shape),
        self_(shape.consumer(memory)),
        peer_(shape.producer(memory)),
        controls_(shape.controls(memory)),
        data_(shape.data(memory)),
        position_(start) {}

  // As Link::front; one load while there is nothing.
  const Message* front() {
    if (shown_) return &message_;
    if (controls_[slot_].sequence.load(std::memory_order_acquire) != position_ + 1) return nullptr;  // pairs with commit
    return show();
  }

  // As Link::release. True if the producer waits for credit: ring its doorbell. `producers`: that doorbell, which knows whether a
  // fence is needed; null: it is.
  bool release(const Doorbell* producers) {
    expects(shown_, "release follows a front that gave a message");
    shown_ = false;
    if (++slot_ == shape_.slots()) slot_ = 0;
    self_->released.store(++position_, std::memory_order_release);  // pairs with RingProducer::look_for_credit
    if (producers != nullptr)
      producers->order();
    else
      std::atomic_thread_fence(std::memory_order_seq_cst);
    return peer_->starving.load(std::memory_order_relaxed) != 0;
  }

  // The length, longer than a message can be, that the producer claimed; 0 while all is well. No message passes after it.
  std::uint64_t impossible_length() const { return impossible_length_; }

 private:
  // Reads the length once: the producer could write another one after it was checked.
  const Message* show() {
    const RingControlLine& control = controls_[slot_];
    const std::uint64_t length = *static_cast<const volatile std::uint64_t*>(&control.length);
    if (length > shape_.max_message.value) [[unlikely]] {
      impossible_length_ = length;
      return nullptr;
    }
    const std::byte* payload = length <= kInlinePayload ? control.payload.data() : data_ + slot_ * shape_.stride();
    message_ = {.payload = {payload, length}, .tag = {control.tag}};
    shown_ = true;
    return &message_;
  }

  RingShape shape_;
  RingConsumerLine* self_;
  RingProducerLine* peer_;
  RingControlLine* controls_;
  std::byte* data_;
  std::uint64_t position_;  // of the message that front() looks for
  std::size_t slot_ = 0;
  bool shown_ = false;  // message_ is the front message
  Message message_;
  std::uint64_t impossible_length_ = 0;
};

}  // namespace shoal::link
