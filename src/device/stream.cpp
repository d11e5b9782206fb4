// SPDX-License-Identifier: Apache-2.0
#include "device/stream.h"

#include <algorithm>

#include "device/nearby.h"

namespace shoal::device {

Stream::Stream()
    : thread_([this, nearby = processors_nearby()] {
        keep_to(nearby);
        run();
      }) {}

Stream::~Stream() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Stream::enqueue(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
    ++enqueued_;
  }
  changed_.notify_all();
}

void Stream::synchronize() {
  std::unique_lock lock(mutex_);
  const std::uint64_t target = enqueued_;
  changed_.wait(lock, [&] { return finished_ >= target; });
}

bool Stream::idle() {
  const std::lock_guard lock(mutex_);
  return finished_ == enqueued_;
}

void Stream::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ending_ || !queue_.empty(); });
    if (queue_.empty()) return;
    {
      const std::function<void()> work = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      work();
    }  // what the work holds goes before the work counts as finished
    lock.lock();
    ++finished_;
    changed_.notify_all();
  }
}

void Event::record(Stream& stream) {
  std::uint64_t number;
  {
    const std::lock_guard lock(state_->mutex);
    number = ++state_->recorded;
  }
  stream.enqueue([state = state_, number] {
    const std::lock_guard lock(state->mutex);
    state->passed = std::max(state->passed, number);
    state->at = std::chrono::steady_clock::now();
    state->changed.notify_all();
  });
}

void Event::delay(Stream& stream) {
  std::uint64_t number;
  {
    const std::lock_guard lock(state_->mutex);
    number = state_->recorded;
  }
  stream.enqueue([state = state_, number] {
    std::unique_lock lock(state->mutex);
    state->changed.wait(lock, [&] { return state->passed >= number; });
  });
}

void Event::synchronize() {
  std::unique_lock lock(state_->mutex);
  const std::uint64_t number = state_->recorded;
  state_->changed.wait(lock, [&] { return state_->passed >= number; });
}

bool Event::passed() {
  const std::lock_guard lock(state_->mutex);
  return state_->passed >= state_->recorded;
}

std::optional<std::chrono::steady_clock::time_point> Event::time() {
  const std::lock_guard lock(state_->mutex);
  if (state_->recorded == 0 || state_->passed < state_->recorded) return std::nullopt;
  return state_->at;
}

}  // namespace shoal::device
