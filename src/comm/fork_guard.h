// SPDX-License-Identifier: Apache-2.0
// Keeps a descriptor out of forked children. A connection's end is how a death is noticed, and a listener's end is how a new one
// can take its port; a child that merely inherited the descriptor would keep both alive. In a child, the number is pointed at
// /dev/null (not closed: a copied owner may still close it). Owns an entry in a fixed, lock-free table; any thread.
#pragma once

#include <atomic>
#include <utility>

namespace shoal::comm {

class ForkGuard {
 public:
  ForkGuard() = default;
  // Beyond some thousands of guards in a process at a time, further ones do nothing.
  explicit ForkGuard(int descriptor);
  ForkGuard(ForkGuard&& other) noexcept : entry_(std::exchange(other.entry_, nullptr)), descriptor_(other.descriptor_) {}
  ForkGuard& operator=(ForkGuard&& other) noexcept;
  // Must run before the descriptor is closed and its number given to something else: declare the guard after the descriptor.
  ~ForkGuard();

 private:
  std::atomic<int>* entry_ = nullptr;
  int descriptor_ = -1;
};

}  // namespace shoal::comm
