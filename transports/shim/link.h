// SPDX-License-Identifier: Apache-2.0
// A link over which messages take their time: it passes them through another one and shows them when they are due (pace.h).
//
// The sender writes behind each payload when it was sent and when it is due, by the clock that all processes of a host share. The
// receiver takes messages out of the inner link as they come, not as they are asked for, so that the inner link's credits are not
// what limits the bytes under way, and keeps them until then. On another host, whose clock is another, it holds the fastest
// message so far to have taken no time.
//
// Driven by one thread. It copies and allocates, as a measuring bench may. Memory is mapped by nobody and no message goes
// straight from or to user memory: window() is empty, direct() null.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "link/link.h"
#include "transports/shim/pace.h"

namespace shoal::transports {

// Behind each payload; the sender's clock.
struct ShimTrailer {
  std::int64_t sent_ns = 0;
  std::int64_t due_ns = 0;
};
inline constexpr std::size_t kShimTrailer = sizeof(ShimTrailer);
static_assert(kShimTrailer == 16);

class ShimLink final : public link::Link {
 public:
  // `pace` outlives the link. `most_held`: no more is taken out ahead of time.
  ShimLink(std::unique_ptr<link::Link> inner, Pace& pace, bool shares_clock, Bytes most_held);

  std::span<std::byte> acquire(Bytes n) override;
  void commit(link::Tag tag) override;
  const link::Message* front() override;
  void release() override;

  void progress() override;
  bool needs_progress() const override { return true; }
  bool flushed() override { return inner_->flushed(); }
  Status health() override;

  link::Wakeup wakeup() const override;
  Bytes max_message() const override { return {inner_->max_message().value - kShimTrailer}; }
  std::string_view transport() const override { return inner_->transport(); }

 private:
  using Clock = Pace::Clock;

  struct Held {
    std::vector<std::byte> payload;
    link::Message message;  // of payload
    Clock::time_point due;
  };

  bool is_full() const { return held_bytes_ >= most_held_.value; }
  void pull();
  Held take(const link::Message& message);
  Clock::time_point due(const ShimTrailer& trailer, Clock::time_point now);

  std::unique_ptr<link::Link> inner_;
  Pace& pace_;
  Bytes most_held_;
  std::chrono::nanoseconds ahead_;  // our clock is so far ahead of the sender's, or less
  std::deque<Held> held_;
  std::size_t held_bytes_ = 0;
  std::span<std::byte> acquired_;  // with room for the trailer
  bool refused_ = false;           // the last acquire found no room
};

}  // namespace shoal::transports
