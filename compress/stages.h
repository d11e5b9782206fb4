// SPDX-License-Identifier: Apache-2.0
// A composition written as a coroutine: it yields one collective after the other, and between two of them does its own work on
// what has come. So a compressed all-reduce reads like its formula:
//
//   Stages SignMajority::all_reduce(Tensor tensor, Place place) {
//     encode(...);
//     co_yield all_to_all(...);      // suspends until the collective has ended
//     count_votes(...);
//     co_yield all_gather(...);
//     decode(...);
//     co_return Status();
//   }
//
// The frame lies in memory of the object whose member the coroutine is (a Frame, by frame()), and is used again from call to
// call: one coroutine of an object at a time, unless one runs another one, which must have a Frame of its own.
#pragma once

#include <coroutine>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "core/status.h"
#include "engine/call.h"

namespace shoal::compress {

// Memory for one coroutine's frame.
class Frame {
 public:
  void* take(std::size_t bytes) {
    if (bytes > bytes_) {
      memory_ = std::make_unique<std::byte[]>(bytes);
      bytes_ = bytes;
    }
    return memory_.get();
  }

 private:
  std::unique_ptr<std::byte[]> memory_;
  std::size_t bytes_ = 0;
};

class Stages {
 public:
  struct promise_type {
    // The coroutine is a member function of Self, which has a frame().
    template <typename Self, typename... Args>
    static void* operator new(std::size_t bytes, Self& self, Args&... /*args*/) {
      return self.frame().take(bytes);
    }
    static void operator delete(void* /*frame*/, std::size_t /*bytes*/) {}

    Stages get_return_object() { return Stages(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    std::suspend_always yield_value(engine::Call next) {
      call = std::move(next);
      return {};
    }
    void return_value(Status status) { result = std::move(status); }
    void unhandled_exception() { throw; }  // out of next(): std::bad_alloc

    std::optional<engine::Call> call;
    Status result;
  };

  Stages() = default;
  Stages(Stages&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Stages& operator=(Stages&& other) noexcept {
    if (this != &other) {
      if (handle_) handle_.destroy();
      handle_ = std::exchange(other.handle_, {});
    }
    return *this;
  }
  ~Stages() {
    if (handle_) handle_.destroy();
  }

  // The next collective; nothing, or a failure: it is over.
  Result<std::optional<engine::Call>> next() {
    if (!handle_ || handle_.done()) return std::optional<engine::Call>();
    handle_.promise().call.reset();
    handle_.resume();
    if (!handle_.done()) return std::move(handle_.promise().call);
    if (!handle_.promise().result.is_ok()) return handle_.promise().result;
    return std::optional<engine::Call>();
  }

 private:
  explicit Stages(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_;
};

}  // namespace shoal::compress
