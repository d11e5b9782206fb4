// SPDX-License-Identifier: Apache-2.0
#include "comm/registrations.h"

#include <atomic>

#include "device/announced_memory.h"

namespace shoal::comm {
namespace {

bool covers(const Registrations::Registration& whole, const void* start, Bytes size) {
  const auto begin = reinterpret_cast<std::uintptr_t>(whole.start), at = reinterpret_cast<std::uintptr_t>(start);
  return at >= begin && at - begin <= whole.size.value && size.value <= whole.size.value - (at - begin);
}

}  // namespace

Registrations::~Registrations() {
  for (const auto& [handle, each] : by_handle_) device::withdraw(each.announcement);
}

std::uintptr_t Registrations::add(const Registration& registration) {
  static std::atomic<std::uintptr_t> last{0};
  const std::uintptr_t handle = ++last;
  const std::lock_guard lock(mutex_);
  const auto* const start = static_cast<const std::byte*>(registration.start);
  by_handle_.emplace(handle, Entry{registration, device::announce({start, registration.size.value})});
  return handle;
}

bool Registrations::remove(Kind kind, std::uintptr_t handle) {
  const std::lock_guard lock(mutex_);
  const auto found = by_handle_.find(handle);
  if (found == by_handle_.end() || found->second.registration.kind != kind) return false;
  device::withdraw(found->second.announcement);
  by_handle_.erase(found);
  return true;
}

std::optional<Registrations::Registration> Registrations::covering(const void* start, Bytes size) const {
  const std::lock_guard lock(mutex_);
  std::optional<Registration> smallest;
  for (const auto& [handle, entry] : by_handle_) {
    const Registration& each = entry.registration;
    if (covers(each, start, size) && (!smallest || each.size.value < smallest->size.value)) smallest = each;
  }
  return smallest;
}

}  // namespace shoal::comm
