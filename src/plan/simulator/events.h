// SPDX-License-Identifier: Apache-2.0
// Events in virtual time. At the same time: what arrives, then messages at resources, then processors, so that who looks for work
// sees all that has come; within that by a key that is the same for all ranks of an orbit, and then first come, first served.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace shoal::plan {

enum class EventKind : std::uint8_t { arrival, credit, at_sender, at_receiver, processor };

class EventQueue {
 public:
  struct Event {
    double at_s;
    std::uint64_t order;
    EventKind kind;
    std::int32_t subject;  // a message, a link or a rank
  };

  // 0 <= key < 2^24
  void push(double at_s, EventKind kind, std::int32_t key, std::int32_t subject) {
    const std::uint64_t order = static_cast<std::uint64_t>(kind) << 61 | static_cast<std::uint64_t>(key) << 37 | pushed_++;
    heap_.push_back({at_s, order, kind, subject});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }
  bool empty() const { return heap_.empty(); }
  Event pop() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const Event first = heap_.back();
    heap_.pop_back();
    return first;
  }

 private:
  static bool later(const Event& a, const Event& b) { return a.at_s != b.at_s ? a.at_s > b.at_s : a.order > b.order; }

  std::vector<Event> heap_;
  std::uint64_t pushed_ = 0;  // < 2^37
};

}  // namespace shoal::plan
