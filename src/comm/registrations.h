// SPDX-License-Identifier: Apache-2.0
// Memory that the user has announced to a communicator: buffers of this rank, and windows, which all ranks registered together.
// While it is here transports know of it, too (device/announced_memory.h). Owned by the communicator. Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "core/types.h"

namespace shoal::comm {

class Registrations {
 public:
  enum class Kind : std::uint8_t { buffer, window };
  struct Registration {
    Kind kind;
    const void* start;
    Bytes size;
  };

  Registrations() = default;
  Registrations(const Registrations&) = delete;
  Registrations& operator=(const Registrations&) = delete;
  ~Registrations();

  // A handle that no other registration of the process has or will have, never 0: a stale or foreign one is recognised.
  std::uintptr_t add(const Registration& registration);

  // False if there is none of this kind with this handle.
  bool remove(Kind kind, std::uintptr_t handle);

  // One that all of [start, start + size) lies in, the smallest; nothing if there is none.
  std::optional<Registration> covering(const void* start, Bytes size) const;

 private:
  struct Entry {
    Registration registration;
    std::uint64_t announcement;
  };
  mutable std::mutex mutex_;
  std::map<std::uintptr_t, Entry> by_handle_;  // under mutex_
};

}  // namespace shoal::comm
