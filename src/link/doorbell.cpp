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

namespace shoal::link {
namespace {

constexpr const char* kPageName = "shoal-doorbell";

// The shared flavour, not FUTEX_PRIVATE_FLAG: the word is mapped by several processes at different addresses.
long futex(const std::atomic<std::uint32_t>& word, int operation, std::uint32_t value, const timespec* timeout) {
  return ::syscall(SYS_futex, reinterpret_cast<const std::uint32_t*>(&word), operation, value, timeout, nullptr, 0);
}

Bytes page_size() { return {static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))}; }

}  // namespace

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
  Doorbell* doorbell = std::construct_at(reinterpret_cast<Doorbell*>(page->memory().data()));
  return DoorbellPage{page.take(), file.take(), doorbell};
}

Result<DoorbellPage> DoorbellPage::map(const Descriptor& file) {
  Result<Mapping> page = map_memory_file(kPageName, file, page_size());
  if (!page.is_ok()) return page.status();
  auto* doorbell = reinterpret_cast<Doorbell*>(page->memory().data());
  return DoorbellPage{page.take(), Descriptor{}, doorbell};
}

}  // namespace shoal::link
