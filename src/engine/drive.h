// SPDX-License-Identifier: Apache-2.0
// Runs calls to their end in the calling thread, and is the one place that decides how to wait: spin a little, then sleep. One
// thread may drive many ranks of many communicators at once.
#pragma once

#include <chrono>
#include <optional>
#include <span>

#include "engine/execution.h"
#include "link/doorbell.h"

namespace shoal::engine {

using Clock = std::chrono::steady_clock;

// What may be wrong with a call.
enum class Trouble : std::uint8_t {
  slow,      // nothing has moved for a second or more
  mismatch,  // a message that belongs to another call
  broken,    // a link ended, or cannot be made
  timeout,   // nothing has moved until the deadline
};

// What a waiting rank must hear besides its links: abort, and news of other ranks. Implemented by the communicator.
class Watch {
 public:
  virtual ~Watch() = default;
  // Ok, or why the call must end. Cheap; called while waiting.
  virtual Status look() = 0;
  // Whether look() would be a failure: one load. Whoever makes it so rings the doorbell.
  virtual bool has_news() const = 0;
  virtual link::Wakeup wakeup() const = 0;

  // The call has not moved for so long, and where it stands. Now and then, while waiting.
  virtual void note(const Standing& standing, std::chrono::nanoseconds unmoved) = 0;
  // All ranks should be heard: if somebody is to blame, look() will soon say so. `own` is what is known here.
  virtual void raise(Trouble trouble, const Status& own) = 0;
  // What to end the call with when nobody said so in time.
  virtual Status unanswered(const Status& own) = 0;
};

struct WaitPolicy {
  std::chrono::nanoseconds spin{0};      // before the first sleep, and again after anything moved
  int yields = 0;                        // offers of the processor to others, after spinning
  std::chrono::milliseconds timeout{0};  // without any movement; 0: for ever
};

// One call of one rank, being driven.
struct Driven {
  Execution* execution = nullptr;
  link::Doorbell* doorbell = nullptr;
  Watch* watch = nullptr;
  Rank rank;
  WaitPolicy policy;

  // Set by drive: how the call ended.
  Status result;
  // Drive's own.
  bool finished = false;
  bool moved = true;  // since last_move was written
  Clock::time_point last_move;
  std::chrono::nanoseconds next_alarm{0};  // when it has not moved for so long
  // Found here, but the true culprit may be another rank: kept back until all ranks have been heard.
  Status held;
  Clock::time_point held_since;
  bool stuck = false;            // held, and it cannot go on
  Clock::time_point news_since;  // when another rank's end was first seen here; zero: not
};

// What comes after a call that has ended: a chance to run the next one of the same rank without waiting for the other ranks'
// calls.
class Refill {
 public:
  virtual ~Refill() = default;
  // `ended` has its result set. True: it now holds the next call, started (or already finished, by an error).
  virtual bool next(Driven& ended) = 0;
};

// Returns when every call has finished or failed, with results set. The executions have been started.
void drive(std::span<Driven> calls, Refill* refill = nullptr);

}  // namespace shoal::engine
