// SPDX-License-Identifier: Apache-2.0
#include "engine/drive.h"

#include <sched.h>

#include <algorithm>

#include "engine/sleep.h"

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace shoal::engine {
namespace {

using namespace std::chrono_literals;

// How often a waiter looks beyond its links: at the health of the link it waits for, at the clock.
constexpr auto kLookEvery = 50ms;
// What is found here may be the fault of a third rank: the control plane is given this long to say whose. Longer than the root
// gives the ranks to answer, and on a busy machine the root has its own delays.
constexpr auto kVerdictTime = 2500ms;
// After the news of another rank's end a call is let go on while it moves, and so long after it last did: what that rank sent
// before counts, and a rank that ended when its last call was done fails nobody who is about to finish the same call.
constexpr auto kLastWords = 200ms;  // on a busy machine a living rank may not run for so long
// When a call that does not move first asks whether another rank makes another call, and how rarely it does at last.
constexpr std::chrono::nanoseconds kFirstAlarm = 1s, kRarestAlarm = 30s;

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// The patience of one thread: spins for the budget of its most patient call, then offers the processor, then is out.
class Patience {
 public:
  explicit Patience(std::span<const Driven> calls) {
    for (const Driven& call : calls) {
      spin_ = std::max(spin_, call.policy.spin);
      yields_ = std::max(yields_, call.policy.yields);
    }
  }
  void renew() { turns_ = yielded_ = 0; }

  // True: look again at once.
  bool wait_briefly() {
    if (spin_.count() > 0) {
      if (turns_ == 0) until_ = {};
      // Reading the clock costs as much as a look at a link: only now and then.
      if (++turns_ % 64 == 0) {
        const auto now = Clock::now();
        if (until_ == Clock::time_point{}) until_ = now + spin_;
        if (now >= until_) turns_ = kOut;
      }
      if (turns_ < kOut) {
        // Two ranks may have started on one processor: the scheduler would part them much later than the budget ends.
        if (turns_ % kYieldEvery == 0) sched_yield();
        if (turns_ > kEagerTurns) relax();
        return true;
      }
    }
    if (yielded_ >= yields_) return false;
    ++yielded_;
    sched_yield();
    return true;
  }

 private:
  static constexpr std::uint64_t kOut = std::uint64_t{1} << 62;
  static constexpr std::uint64_t kEagerTurns = 32;   // a small message comes within so many; a pause would be a tenth of its time
  static constexpr std::uint64_t kYieldEvery = 512;  // some 20 us
  std::chrono::nanoseconds spin_{0};
  int yields_ = 0;
  std::uint64_t turns_ = 0;
  int yielded_ = 0;
  Clock::time_point until_;
};

std::string seconds(std::chrono::nanoseconds time) {
  return fmt::format("{:.1f} s", std::chrono::duration<double>(time).count());
}

Status timed_out(const Driven& call, const Standing& standing) {
  return {Code::timeout,
          fmt::format("rank {}, {} for {}; SHOAL_TIMEOUT_MS sets how long to wait", call.rank.value, standing.doing,
                      seconds(call.policy.timeout)),
          standing.waits_for};
}

// Why the call must end, and what it was doing here.
Status in_context(const Status& why, const Driven& call) {
  return {why.code(), fmt::format("{} [rank {}: {}]", why.text(), call.rank.value, call.execution->standing().doing),
          why.culprit()};
}

void hold(Driven& call, Trouble trouble, Status own, Clock::time_point now) {
  call.watch->raise(trouble, own);
  call.held = std::move(own);
  call.held_since = now;
  call.stuck = trouble == Trouble::mismatch;
}

Status link_health(const Driven& call) {
  const Waiting waiting = call.execution->waiting();
  link::Link* over = call.execution->links().get(waiting.peer, waiting.channel);
  const Status& making = call.execution->links().failure();
  return making.is_ok() && over != nullptr ? over->health() : making;
}

// Whether a message that is awaited is known to be under way.
bool is_under_way(const Driven& call) {
  bool found = false;
  call.execution->for_each_waiting([&](const Waiting& waiting) {
    const link::Link* const over = call.execution->links().get(waiting.peer, waiting.channel);
    found |= waiting.to_receive && over != nullptr && over->wakeup().at.has_value();
  });
  return found;
}

// Why this call must end, if it must.
Status trouble(Driven& call, Clock::time_point now) {
  if (is_under_way(call)) call.last_move = now;
  if (Status s = call.watch->look(); !s.is_ok()) {
    if (s.code() != Code::remote_error) return in_context(s, call);
    if (call.news_since == Clock::time_point{}) call.news_since = now;
    return now - std::max(call.news_since, call.last_move) >= kLastWords ? in_context(s, call) : Status();
  }
  if (!call.held.is_ok()) return now - call.held_since >= kVerdictTime ? call.watch->unanswered(call.held) : Status();
  const auto unmoved = now - call.last_move;
  if (Status health = link_health(call); !health.is_ok()) {
    call.watch->note(call.execution->standing(), unmoved);
    hold(call, Trouble::broken, std::move(health), now);
    return {};
  }
  const bool late = call.policy.timeout.count() > 0 && unmoved >= call.policy.timeout;
  if (unmoved < kLookEvery && !late) return {};
  const Standing standing = call.execution->standing();
  call.watch->note(standing, unmoved);
  if (late) {
    hold(call, Trouble::timeout, timed_out(call, standing), now);
  } else if (unmoved >= call.next_alarm) {
    call.watch->raise(Trouble::slow, timed_out(call, standing));
    call.next_alarm = std::min(2 * std::max<std::chrono::nanoseconds>(unmoved, kFirstAlarm), unmoved + kRarestAlarm);
  }
  return {};
}

class Drive {
 public:
  Drive(std::span<Driven> calls, Refill* refill) : calls_(calls), patience_(calls), refill_(refill) {
    for (const Driven& call : calls) open_ += call.finished ? 0 : 1;
  }

  void run() {
    while (open_ > 0) {
      if (advance_all()) {
        patience_.renew();
        continue;
      }
      progress_all();
      if (open_ == 0 || patience_.wait_briefly()) continue;
      sleep();
    }
  }

 private:
  bool advance_all() {
    bool moved = false;
    for (Driven& call : calls_) {
      if (call.finished || call.stuck) continue;
      if (call.execution->advance()) moved = call.moved = true;
      if (call.execution->done()) finish(call, {});
    }
    return moved;
  }

  void progress_all() {
    for (Driven& call : calls_) {
      if (call.finished) continue;
      if (!call.execution->failure().is_ok() && !call.stuck)
        hold(call, Trouble::mismatch, call.execution->failure(), Clock::now());
      call.execution->links().progress();
    }
  }

  void finish(Driven& call, Status result) {
    call.result = std::move(result);
    call.finished = true;
    while (refill_ != nullptr && refill_->next(call)) {
      call.moved = true;
      call.held = {};
      call.stuck = false;
      call.news_since = {};
      if (!call.finished) return;
    }
    --open_;
  }

  void sleep() {
    auto now = Clock::now();
    for (Driven& call : calls_) note_moves(call, now);
    if (next_look_ == Clock::time_point{}) next_look_ = now + kLookEvery;
    sleep_until_news(calls_, std::max<std::chrono::nanoseconds>(next_look_ - now, 1us),
                     [this] { return !advance_all() && open_ > 0 && !has_news(); });
    now = Clock::now();
    if (now < next_look_ && !has_news()) return;
    next_look_ = now + kLookEvery;
    for (Driven& call : calls_) {
      if (call.finished) continue;
      note_moves(call, now);
      if (Status s = trouble(call, now); !s.is_ok()) finish(call, std::move(s));
    }
  }

  // The clock is first read at the first sleep: most calls end before, and reading it costs a tenth of a small one.
  static void note_moves(Driven& call, Clock::time_point now) {
    if (!call.moved) return;
    call.moved = false;
    call.last_move = now;
    call.next_alarm = kFirstAlarm;
    if (!call.stuck) call.held = {};
  }

  bool has_news() const {
    return std::any_of(calls_.begin(), calls_.end(), [](const Driven& call) {
      return !call.finished && call.news_since == Clock::time_point{} && call.watch->has_news();
    });
  }

  std::span<Driven> calls_;
  Patience patience_;
  Refill* refill_;
  std::size_t open_ = 0;
  Clock::time_point next_look_{};
};

}  // namespace

void drive(std::span<Driven> calls, Refill* refill) { Drive(calls, refill).run(); }

}  // namespace shoal::engine
