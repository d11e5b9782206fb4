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

// How often a waiter looks beyond its links: for abort, for news of other ranks, at the health of the link it waits for.
constexpr auto kLookEvery = 50ms;
// A broken link, or one that cannot be made, names its peer, but the peer may have left because of somebody else, or died: the
// control plane is given this long to say.
constexpr auto kGrace = 300ms;

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

Status timed_out(const Driven& call) {
  const Waiting waiting = call.execution->waiting();
  link::Link* over = call.execution->links().get(waiting.peer, waiting.channel);
  return {Code::timeout,
          fmt::format("rank {}, {}: {} rank {} for {:.1f} s ({}); SHOAL_TIMEOUT_MS sets how long to wait", call.rank.value,
                      call.execution->describe(),
                      over == nullptr      ? "no connection to"
                      : waiting.to_receive ? "nothing from"
                                           : "no room towards",
                      waiting.peer.value, std::chrono::duration<double>(call.policy.timeout).count(),
                      over == nullptr ? "connecting" : over->transport()),
          waiting.peer};
}

// Why this call must end, if it must.
Status trouble(Driven& call, Clock::time_point now) {
  if (Status s = call.watch->look(); !s.is_ok()) return s;
  const Waiting waiting = call.execution->waiting();
  link::Link* over = call.execution->links().get(waiting.peer, waiting.channel);
  Status health = call.execution->links().failure();
  if (health.is_ok() && over != nullptr) health = over->health();
  if (health.is_ok()) {
    call.link_broken_since.reset();
  } else {
    if (!call.link_broken_since) call.link_broken_since = now;
    if (now - *call.link_broken_since >= kGrace) return health;
  }
  if (call.policy.timeout.count() > 0 && now - call.last_move >= call.policy.timeout) return timed_out(call);
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
        moved_ = true;
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
      if (call.finished) continue;
      moved |= call.execution->advance();
      if (call.execution->done()) finish(call, {});
    }
    return moved;
  }

  void progress_all() {
    for (Driven& call : calls_) {
      if (call.finished) continue;
      if (!call.execution->failure().is_ok()) {
        finish(call, call.execution->failure());
        continue;
      }
      call.execution->links().progress();
    }
  }

  void finish(Driven& call, Status result) {
    call.result = std::move(result);
    call.finished = true;
    while (refill_ != nullptr && refill_->next(call)) {
      call.last_move = Clock::now();
      call.link_broken_since.reset();
      if (!call.finished) return;
    }
    --open_;
  }

  void sleep() {
    auto now = Clock::now();
    if (moved_) {
      for (Driven& call : calls_) call.last_move = now;
      moved_ = false;
    }
    if (next_look_ == Clock::time_point{}) next_look_ = now + kLookEvery;
    sleep_until_news(calls_, std::max<std::chrono::nanoseconds>(next_look_ - now, 1us), [this] {
      const bool moved = advance_all();
      moved_ |= moved;
      return !moved && open_ > 0;
    });
    now = Clock::now();
    if (now < next_look_) return;
    next_look_ = now + kLookEvery;
    for (Driven& call : calls_) {
      if (call.finished) continue;
      if (Status s = trouble(call, now); !s.is_ok()) finish(call, std::move(s));
    }
  }

  std::span<Driven> calls_;
  Patience patience_;
  Refill* refill_;
  std::size_t open_ = 0;
  // The clock is first read at the first sleep: most calls end before, and reading it costs a tenth of a small one.
  bool moved_ = true;  // since last_move was written
  Clock::time_point next_look_{};
};

}  // namespace

void drive(std::span<Driven> calls, Refill* refill) { Drive(calls, refill).run(); }

}  // namespace shoal::engine
