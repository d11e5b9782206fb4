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

// n floats, zeros at first. A resource: moved, never copied. Vectors that one pass goes through side by side get different places
// in their pages: where a store has the low 12 bits of a later load's address, the processor takes the one for the other's and
// waits (measured: a pass over five vectors took 7 times as long).
class Floats {
 public:
  explicit Floats(std::size_t n, std::size_t place = 0) : size_(n) {
    if (n == 0) return;
    memory_.reset(static_cast<std::byte*>(::operator new (n * sizeof(float) + kPage, std::align_val_t{kPage})));
    data_ = reinterpret_cast<float*>(memory_.get() + kPlace / 2 + place % (kPage / kPlace) * kPlace);
    std::memset(data_, 0, n * sizeof(float));
  }
  float* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::span<float> span() const { return {data_, size_}; }

 private:
  static constexpr std::size_t kPage = 4096;
  static constexpr std::size_t kPlace = 1024;  // whole cache lines; users' vectors mostly begin near the start of a page
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete (memory, std::align_val_t{kPage}); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  float* data_ = nullptr;
  std::size_t size_;
};

// What is remembered, and what will be when the call under way is over: a call that does not end, or whose inputs turn out not
// to be finite on any rank, leaves no trace. Costs the memory twice, and no traffic: what is read from one is written to the
// other.
class Remembered {
 public:
  // `place`: another one for each that a pass goes through.
  explicit Remembered(std::size_t n, std::size_t place = 0) : now_(n, 2 * place), next_(n, 2 * place + 1) {}
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
