// SPDX-License-Identifier: Apache-2.0
// Memory of compressors' states: floats on a boundary of cache lines, so that they can be written past the caches.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <utility>

namespace shoal::compress::sparse {

constexpr std::size_t kAlignment = 64;  // [bytes] of the widest vector's store

// n floats, zeros at first. A resource: moved, never copied.
class Floats {
 public:
  explicit Floats(std::size_t n = 0) : size_(n) {
    if (n == 0) return;
    memory_.reset(static_cast<float*>(::operator new (n * sizeof(float), std::align_val_t{kAlignment})));
    std::memset(memory_.get(), 0, n * sizeof(float));
  }
  float* data() const { return memory_.get(); }
  std::size_t size() const { return size_; }
  std::span<float> span() const { return {memory_.get(), size_}; }

 private:
  struct Free {
    void operator()(float* memory) const { ::operator delete (memory, std::align_val_t{kAlignment}); }
  };
  std::unique_ptr<float, Free> memory_;
  std::size_t size_;
};

// What is remembered, and what will be when the call under way is over: a call that does not end, or whose inputs turn out not
// to be finite on any rank, leaves no trace. Costs the memory twice, and no traffic: what is read from one is written to the
// other.
class Remembered {
 public:
  explicit Remembered(std::size_t n) : now_(n), next_(n) {}
  float* now() const { return now_.data(); }
  float* next() const { return next_.data(); }
  std::span<float> now_span() const { return now_.span(); }
  std::span<float> next_span() const { return next_.span(); }
  bool empty() const { return now_.size() == 0; }
  void step() { std::swap(now_, next_); }

 private:
  Floats now_, next_;
};

}  // namespace shoal::compress::sparse
