// SPDX-License-Identifier: Apache-2.0
// Streams on the host: work runs in order on a thread of the stream's own. Events mark places in that order. Safe from any
// thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

namespace shoal::device {

class Stream {
 public:
  Stream();
  ~Stream();  // runs what is enqueued, then ends the thread
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Work must not throw.
  void enqueue(std::function<void()> work);
  // Waits until everything enqueued before the call has run. Not from the stream's own work.
  void synchronize();
  bool idle();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;    // under mutex_
  std::uint64_t enqueued_ = 0, finished_ = 0;  // under mutex_
  bool ending_ = false;                        // under mutex_
  std::thread thread_;                         // last: it starts with everything else in place
};

class Event {
 public:
  // The event passes when everything enqueued on the stream so far has run.
  void record(Stream& stream);
  // Work enqueued on the stream from now on waits for the last recording.
  void delay(Stream& stream);
  void synchronize();
  bool passed();
  // When the last recording passed; nothing if it has not, or if there was none.
  std::optional<std::chrono::steady_clock::time_point> time();

 private:
  // Shared with enqueued work, so that an event may go while a stream still refers to it.
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::uint64_t recorded = 0, passed = 0;  // under mutex
    std::chrono::steady_clock::time_point at;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace shoal::device
