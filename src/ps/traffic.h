// SPDX-License-Identifier: Apache-2.0
// What went over one link, counted by the thread that drives it, read by any.
#pragma once

#include <atomic>
#include <cstdint>

namespace shoal::ps {

struct Counts {
  std::uint64_t payload_bytes = 0;
  std::uint64_t payload_messages = 0;  // messages with payload
  std::uint64_t header_bytes = 0;
  std::uint64_t messages = 0;  // all

  Counts& operator+=(const Counts& other) {
    payload_bytes += other.payload_bytes;
    payload_messages += other.payload_messages;
    header_bytes += other.header_bytes;
    messages += other.messages;
    return *this;
  }
};

class Counter {
 public:
  void count(std::size_t payload, std::size_t header) {
    add(payload_bytes_, payload);
    add(payload_messages_, payload > 0 ? 1 : 0);
    add(header_bytes_, header);
    add(messages_, 1);
  }
  Counts counts() const {
    return {.payload_bytes = payload_bytes_.load(std::memory_order_relaxed),
            .payload_messages = payload_messages_.load(std::memory_order_relaxed),
            .header_bytes = header_bytes_.load(std::memory_order_relaxed),
            .messages = messages_.load(std::memory_order_relaxed)};
  }

 private:
  using Number = std::atomic<std::uint64_t>;  // one writer: a load and a store will do
  static void add(Number& number, std::uint64_t n) {
    number.store(number.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  Number payload_bytes_{0}, payload_messages_{0}, header_bytes_{0}, messages_{0};
};

struct Traffic {
  Counter sent, received;
};

}  // namespace shoal::ps
