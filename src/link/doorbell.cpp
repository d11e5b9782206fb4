// SPDX-License-Identifier: Apache-2.0
#include "link/doorbell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <ctime>
#include <memory>

#include "core/ticks.h"

namespace shoal::link {
namespace {

constexpr const char* kPageName = "shoal-doorbell";

// The shared flavour, not FUTEX_PRIVATE_FLAG: the word is mapped by several processes at different addresses.
long futex(const std::atomic<std::uint32_t>& word, int operation, std::uint32_t value, const timespec* timeout) {
  return ::syscall(SYS_futex, reinterpret_cast<const std::uint32_t*>(&word), operation, value, timeout, nullptr, 0);
}

// How many sleeps are counted, and how short an average time between them is often: a fence everywhere interrupts every processor
// that runs such a process.
constexpr std::uint32_t kCounted = 16;
constexpr std::chrono::nanoseconds kOften = std::chrono::milliseconds{1};

Bytes page_size() { return {static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))}; }

}  // namespace

std::uint32_t Doorbell::arm() {
  if (++sleeps_ == kCounted) decide_who_fences();
  armed_.store(1, std::memory_order_seq_cst);
  if (peers_fence_.load(std::memory_order_relaxed) == 0) RemoteFence::everywhere();
  return rings_.load(std::memory_order_seq_cst);
}

void Doorbell::decide_who_fences() {
  const TickScale clock = TickScale::now();
  const bool often = since_ != 0 && clock.age_ns(since_) < static_cast<std::int64_t>(kCounted) * kOften.count();
  const bool fence = often || !RemoteFence::takes_part();
  const bool was = peers_fence_.exchange(fence ? 1 : 0) != 0;
  if (fence && !was) RemoteFence::everywhere();  // from here on they have all read it
  sleeps_ = 0;
  since_ = ticks_now();
}

bool Doorbell::sleep(std::uint32_t ticket, std::chrono::nanoseconds timeout) {
  using std::chrono::nanoseconds, std::chrono::seconds;
  const nanoseconds rest = std::max(timeout, nanoseconds{0});
  const auto whole = std::chrono::duration_cast<seconds>(rest);
  const timespec relative{.tv_sec = static_cast<time_t>(whole.count()), .tv_nsec = static_cast<long>((rest - whole).count())};
  const bool timed_out = futex(rings_, FUTEX_WAIT, ticket, &relative) != 0 && errno == ETIMEDOUT;
  disarm();
  return !timed_out;
}

// Leaves armed_ alone: it is the waiter's. Were it cleared here, a ringer that dies between the two steps would leave a sleeping
// waiter that nobody wakes any more.
void Doorbell::wake() {
  rings_.fetch_add(1, std::memory_order_seq_cst);
  futex(rings_, FUTEX_WAKE, INT_MAX, nullptr);
}

Result<DoorbellPage> DoorbellPage::create() {
  Result<Descriptor> file = create_memory_file(kPageName, page_size());
  if (!file.is_ok()) return file.status();
  Result<Mapping> page = map_memory_file(kPageName, *file, page_size());
  if (!page.is_ok()) return page.status();
  RemoteFence::join();
  Doorbell* doorbell = std::construct_at(reinterpret_cast<Doorbell*>(page->memory().data()));
  return DoorbellPage{page.take(), file.take(), doorbell};
}

Result<DoorbellPage> DoorbellPage::map(const Descriptor& file) {
  Result<Mapping> page = map_memory_file(kPageName, file, page_size());
  if (!page.is_ok()) return page.status();
  RemoteFence::join();
  auto* doorbell = reinterpret_cast<Doorbell*>(page->memory().data());
  return DoorbellPage{page.take(), Descriptor{}, doorbell};
}

}  // namespace shoal::link
