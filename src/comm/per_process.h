// SPDX-License-Identifier: Apache-2.0
// An object that a process has one of, made at its first use and destroyed when the process ends in order. A forked child starts
// without one: its parent's copy, whose threads are not here and whose locks may be held by one of them, is kept and never
// touched. Any thread.
#pragma once

#include <unistd.h>

#include <atomic>
#include <memory>

#include "core/log.h"

namespace shoal::comm {

template <typename T>
class PerProcess {
 public:
  PerProcess() { (void)log::enabled(log::Level::info); }  // so that the log outlives this
  PerProcess(const PerProcess&) = delete;
  PerProcess& operator=(const PerProcess&) = delete;
  ~PerProcess() {
    Kept* const last = current_.load(std::memory_order_acquire);
    if (last == nullptr || last->process != getpid()) return;
    current_.store(last->of_parent, std::memory_order_release);
    const std::unique_ptr<Kept> owned(last);
  }

  T& get() {
    Kept* current = current_.load(std::memory_order_acquire);
    while (current == nullptr || current->process != getpid()) {
      auto fresh = std::make_unique<Kept>(current);
      // If another thread was faster, `current` is what it made.
      if (current_.compare_exchange_strong(current, fresh.get(), std::memory_order_acq_rel)) return fresh.release()->object;
    }
    return current->object;
  }
  // Null before the first use, and after the end.
  T* existing() {
    Kept* const current = current_.load(std::memory_order_acquire);
    return current == nullptr || current->process != getpid() ? nullptr : &current->object;
  }

 private:
  struct Kept {
    explicit Kept(Kept* parents) : of_parent(parents) {}
    const pid_t process = getpid();
    Kept* const of_parent;
    T object;
  };
  std::atomic<Kept*> current_{nullptr};
};

}  // namespace shoal::comm
