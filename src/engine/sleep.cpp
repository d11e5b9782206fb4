// SPDX-License-Identifier: Apache-2.0
#include "engine/sleep.h"

#include <linux/futex.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <thread>
#include <vector>

namespace shoal::engine {
namespace {

using namespace std::chrono_literals;

// A sleeper cannot wait for a futex and for descriptors in one call: where it needs both it sleeps on the descriptors in naps.
constexpr auto kNap = 200us;
// Two ends of a link in one process find each other in a table, which wakes nobody.
constexpr auto kConnectingNap = 500us;

timespec to_timespec(std::chrono::nanoseconds ns) {
  return {.tv_sec = static_cast<time_t>(ns.count() / 1'000'000'000), .tv_nsec = static_cast<long>(ns.count() % 1'000'000'000)};
}

struct Sources {
  std::vector<pollfd> descriptors;
  bool doorbells = false;               // some awaited link rings
  bool connecting = false;              // some link is being made
  std::optional<Clock::time_point> at;  // when an awaited link surely has something
};

// Whoever rings has no bytes on its descriptor, only its end, which is for those who look now and then.
void add(Sources& sources, const link::Wakeup& wakeup) {
  if (wakeup.descriptor >= 0 && !wakeup.rings_doorbell) sources.descriptors.push_back({wakeup.descriptor, wakeup.events, 0});
  sources.doorbells |= wakeup.rings_doorbell;
  if (wakeup.at && (!sources.at || *wakeup.at < *sources.at)) sources.at = wakeup.at;
}

// What tells that a link's last bytes have left: the descriptor's POLLOUT, where it has that (messages that come would end every
// sleep); else whatever wakes the link's owner.
link::Wakeup news_of_room(link::Wakeup wakeup) {
  if ((wakeup.events & POLLOUT) != 0) wakeup.events = POLLOUT;
  return wakeup;
}

// Only what the calls wait for now: a link that has something for a later step would end every sleep at once.
Sources collect(std::span<const Driven> calls) {
  Sources sources;
  std::vector<link::Wakeup> making;
  for (const Driven& call : calls) {
    if (call.finished || call.stuck) continue;
    Links& links = call.execution->links();
    call.execution->for_each_waiting([&](const Waiting& waiting) {
      if (const link::Link* awaited = links.get(waiting.peer, waiting.channel)) add(sources, awaited->wakeup());
    });
    for (link::Link* each : links.needing_progress())
      if (!each->flushed()) add(sources, news_of_room(each->wakeup()));
    if (links.connecting()) {
      sources.connecting = true;
      links.switchboard().wakeups(making);
    }
  }
  for (const link::Wakeup& wakeup : making) add(sources, wakeup);
  return sources;
}

// futex_waitv, Linux 5.16. False where it does not exist.
bool sleep_on_many(std::span<const Driven> calls, std::span<const std::uint32_t> tickets, std::chrono::nanoseconds longest) {
#ifdef SYS_futex_waitv
  constexpr std::size_t kMost = 128;  // FUTEX_WAITV_MAX
  std::array<futex_waitv, kMost> waiters{};
  std::size_t n = 0;
  for (std::size_t i = 0; i < calls.size() && n < kMost; ++i)
    if (!calls[i].finished)
      waiters[n++] = {.val = tickets[i],
                      .uaddr = reinterpret_cast<std::uintptr_t>(&calls[i].doorbell->word()),
                      .flags = FUTEX_32,
                      .__reserved = 0};
  timespec until{};
  clock_gettime(CLOCK_MONOTONIC, &until);
  const auto at = std::chrono::seconds(until.tv_sec) + std::chrono::nanoseconds(until.tv_nsec) + longest;
  until = to_timespec(at);
  if (syscall(SYS_futex_waitv, waiters.data(), n, 0, &until, CLOCK_MONOTONIC) >= 0 || errno != ENOSYS) return true;
#else
  (void)calls, (void)tickets, (void)longest;
#endif
  return false;
}

void sleep_on_doorbells(std::span<const Driven> calls, std::chrono::nanoseconds longest,
                        const std::function<bool()>& still_nothing) {
  std::vector<std::uint32_t> tickets(calls.size());
  for (std::size_t i = 0; i < calls.size(); ++i)
    if (!calls[i].finished) tickets[i] = calls[i].doorbell->arm();
  if (still_nothing() && !sleep_on_many(calls, tickets, longest))
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(kNap, longest));
  for (const Driven& call : calls) call.doorbell->disarm();
}

// The usual case, without allocation: one call, all of whose links ring. A link that it waits for and that is still being made
// rings nothing: that news comes on descriptors.
bool only_rings(std::span<const Driven> calls) {
  if (calls.size() != 1) return false;
  Links& links = calls[0].execution->links();
  if (!links.needing_progress().empty()) return false;
  bool made = true;
  calls[0].execution->for_each_waiting(
      [&](const Waiting& waiting) { made &= links.get(waiting.peer, waiting.channel) != nullptr; });
  return made;
}

}  // namespace

void sleep_until_news(std::span<const Driven> calls, std::chrono::nanoseconds longest,
                      const std::function<bool()>& still_nothing) {
  if (only_rings(calls)) {
    link::Doorbell& doorbell = *calls[0].doorbell;
    const std::uint32_t ticket = doorbell.arm();
    if (still_nothing())
      doorbell.sleep(ticket, longest);
    else
      doorbell.disarm();
    return;
  }
  Sources sources = collect(calls);
  if (sources.at) longest = std::clamp<std::chrono::nanoseconds>(*sources.at - Clock::now(), 0ns, longest);
  if (sources.connecting) longest = std::min<std::chrono::nanoseconds>(longest, kConnectingNap);
  if (sources.descriptors.empty()) return sleep_on_doorbells(calls, longest, still_nothing);

  if (sources.doorbells) longest = std::min<std::chrono::nanoseconds>(longest, kNap);
  for (const Driven& call : calls)
    if (!call.finished && call.news_since == Clock::time_point{}) add(sources, call.watch->wakeup());
  if (!still_nothing()) return;  // progress may have read what the descriptors would have told of
  const timespec timeout = to_timespec(longest);
  ppoll(sources.descriptors.data(), sources.descriptors.size(), &timeout, nullptr);
}

}  // namespace shoal::engine
