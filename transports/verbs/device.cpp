// SPDX-License-Identifier: Apache-2.0
#include "transports/verbs/device.h"

#include <sys/resource.h>

#include "core/log.h"
#include "device/announced_memory.h"
#include "device/host_memory.h"

namespace shoal::transports::verbs {
namespace {

// Pinned pages count as locked ones.
std::string remedy() {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "";
  return fmt::format("; this process may lock {} KiB (ulimit -l): raise that, in /etc/security/limits.conf or with the launcher",
                     limit.rlim_cur >> 10);
}

}  // namespace

Result<std::unique_ptr<Region>> Device::pin(std::span<std::byte> memory) {
  Result<std::unique_ptr<Region>> region = context_->pin(memory);
  if (!region.is_ok())
    return fail(Code::system_error, "{}: {} bytes cannot be pinned: {}{}", name_, memory.size(), region.status().text(),
                remedy());
  return region;
}

std::optional<Device::Whole> Device::whole_of(std::span<const std::byte> memory) {
  if (const std::optional<device::Shareable> block = device::shareable(memory.data(), {memory.size()}))
    return Whole{{Kind::block, block->number}, {memory.data() - block->offset, block->size}};
  if (const std::optional<device::Announced> each = device::announced(memory))
    return Whole{{Kind::announced, each->number}, each->memory};
  return std::nullopt;
}

bool Device::still_is(const Name& name, std::span<const std::byte> memory) {
  if (name.first == Kind::announced) return device::is_announced(name.second);
  const std::optional<device::Shareable> now = device::shareable(memory.data(), {memory.size()});
  return now && now->number == name.second;
}

std::optional<Keys> Device::keys_of(std::span<const std::byte> memory) {
  const std::optional<Whole> whole = whole_of(memory);
  if (!whole) return std::nullopt;
  const std::lock_guard lock(mutex_);
  forget_ended();
  auto place = pinned_.find(whole->name);
  if (place == pinned_.end()) {
    // The device writes into it where a peer has been offered some of it: it is the user's to write.
    auto* const start = const_cast<std::byte*>(whole->memory.data());
    Result<std::unique_ptr<Region>> region = pin({start, whole->memory.size()});
    if (!region.is_ok())
      log::info(log::Subsystem::net, -1, "verbs: messages from and to a block are copied: {}", region.status().text());
    place = pinned_.emplace(whole->name, Pinned{whole->memory, region.is_ok() ? region.take() : nullptr}).first;
  }
  const Region* const region = place->second.region.get();
  if (region == nullptr) return std::nullopt;
  return Keys{region->local_key(), region->remote_key()};
}

void Device::forget_ended() {
  const std::uint64_t ended = device::frees() + device::withdrawals();
  if (ended == ended_) return;
  ended_ = ended;
  std::erase_if(pinned_, [](const auto& each) { return !still_is(each.first, each.second.memory); });
}

void Device::look() {
  const std::lock_guard lock(events_);
  while (const std::optional<Event> event = context_->next_event()) {
    const std::uint64_t bit = event->port < 64 ? std::uint64_t{1} << event->port : 0;
    switch (event->kind) {
      case Event::Kind::port_down:
        down_.fetch_or(bit);
        log::warn(-1, "verbs: port {} of {} has lost its wire", event->port, name_);
        break;
      case Event::Kind::port_up: down_.fetch_and(~bit); break;
      case Event::Kind::device_gone: gone_.store(true); break;
      case Event::Kind::other: break;
    }
  }
}

}  // namespace shoal::transports::verbs
