// SPDX-License-Identifier: Apache-2.0
#include "comm/fork_guard.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <cstddef>

namespace shoal::comm {
namespace {

// The one thing here that has to be global: a fork handler gets no argument. Zero-initialised and never destroyed, so it may be
// used at any time; an entry holds descriptor + 1, 0 is free.
constinit std::array<std::atomic<int>, 8192> guarded{};
constinit std::atomic<std::size_t> high_water{0};  // no entry at or beyond it was ever used

// In the child, between fork and return: only async-signal-safe calls.
void detach_in_child() {
  const std::size_t end = high_water.load(std::memory_order_acquire);
  int nothing = -1;
  for (std::size_t i = 0; i < end; ++i) {
    const int descriptor = guarded[i].load(std::memory_order_relaxed) - 1;
    if (descriptor < 0) continue;
    if (nothing < 0) nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nothing >= 0) (void)dup3(nothing, descriptor, O_CLOEXEC);
    guarded[i].store(0, std::memory_order_relaxed);
  }
  if (nothing >= 0) close(nothing);
}

bool install() { return pthread_atfork(nullptr, nullptr, detach_in_child) == 0; }

}  // namespace

ForkGuard::ForkGuard(int descriptor) : descriptor_(descriptor) {
  static const bool installed = install();
  if (!installed || descriptor < 0) return;
  for (std::size_t i = 0; i < guarded.size(); ++i) {
    int free = 0;
    if (!guarded[i].compare_exchange_strong(free, descriptor + 1, std::memory_order_acq_rel)) continue;
    std::size_t seen = high_water.load(std::memory_order_relaxed);
    while (seen <= i && !high_water.compare_exchange_weak(seen, i + 1, std::memory_order_acq_rel)) {
    }
    entry_ = &guarded[i];
    return;
  }
}

ForkGuard& ForkGuard::operator=(ForkGuard&& other) noexcept {
  std::swap(entry_, other.entry_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

// In a forked child the entry was emptied by the handler and may have a new owner by now: only its own number is taken out.
ForkGuard::~ForkGuard() {
  if (entry_ == nullptr) return;
  int own = descriptor_ + 1;
  (void)entry_->compare_exchange_strong(own, 0, std::memory_order_acq_rel);
}

}  // namespace shoal::comm
