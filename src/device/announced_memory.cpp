// SPDX-License-Identifier: Apache-2.0
#include "device/announced_memory.h"

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

namespace shoal::device {
namespace {

struct Announcements {
  std::mutex mutex;
  std::map<std::uint64_t, std::span<const std::byte>> by_number;  // under mutex
  std::uint64_t last = 0;                                         // under mutex
  std::atomic<std::size_t> count{0};                              // of by_number, for those who only want to know that it is 0
  std::atomic<std::uint64_t> withdrawals{0};
};

Announcements& announcements() {
  // Lives as long as the process: communicators may end in destructors of the user's static objects.
  static Announcements* const all = std::make_unique<Announcements>().release();
  return *all;
}

bool covers(std::span<const std::byte> whole, std::span<const std::byte> part) {
  const std::less_equal<const std::byte*> not_behind;
  return not_behind(whole.data(), part.data()) && not_behind(part.data() + part.size(), whole.data() + whole.size());
}

}  // namespace

std::uint64_t announce(std::span<const std::byte> memory) {
  Announcements& all = announcements();
  const std::lock_guard lock(all.mutex);
  all.by_number.emplace(++all.last, memory);
  all.count.store(all.by_number.size());
  return all.last;
}

void withdraw(std::uint64_t number) {
  Announcements& all = announcements();
  const std::lock_guard lock(all.mutex);
  if (all.by_number.erase(number) == 0) return;
  all.count.store(all.by_number.size());
  all.withdrawals.fetch_add(1);
}

std::optional<Announced> announced(std::span<const std::byte> memory) {
  Announcements& all = announcements();
  if (all.count.load() == 0) return std::nullopt;
  const std::lock_guard lock(all.mutex);
  for (const auto& [number, each] : all.by_number)
    if (covers(each, memory)) return Announced{number, each};
  return std::nullopt;
}

bool is_announced(std::uint64_t number) {
  Announcements& all = announcements();
  const std::lock_guard lock(all.mutex);
  return all.by_number.contains(number);
}

std::uint64_t withdrawals() { return announcements().withdrawals.load(); }

}  // namespace shoal::device
