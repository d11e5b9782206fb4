// SPDX-License-Identifier: Apache-2.0
#include "comm/services.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <list>
#include <mutex>
#include <system_error>
#include <thread>

#include "core/log.h"
#include "core/signals.h"

namespace shoal::comm {
namespace {

class Registry {
 public:
  explicit Registry(Registry* of_parent) : of_parent_(of_parent) {}
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;
  ~Registry() {
    const std::scoped_lock lock(mutex_);
    for (Running& running : running_) running.service->stop();
    for (Running& running : running_) running.thread.join();
  }

  pid_t process() const { return process_; }
  Registry* of_parent() const { return of_parent_; }

  bool runs(const link::Key& communicator) {
    const std::scoped_lock lock(mutex_);
    for (const Running& running : running_)
      if (running.service->key() == communicator && !running.finished.load(std::memory_order_acquire)) return true;
    return false;
  }

  Status start(std::unique_ptr<RootService> service) {
    const std::scoped_lock lock(mutex_);
    collect_finished();
    Running& running = running_.emplace_back();
    running.service = std::move(service);
    try {
      const SignalsBlocked blocked;
      running.thread = std::thread([&running] {
        (void)pthread_setname_np(pthread_self(), "shoal-root");
        running.service->run();
        running.finished.store(true, std::memory_order_release);
      });
    } catch (const std::system_error& error) {
      running_.pop_back();
      return fail(Code::system_error, "starting the root service's thread: {}", error.what());
    }
    return {};
  }

 private:
  struct Running {
    std::unique_ptr<RootService> service;
    std::thread thread;
    std::atomic<bool> finished{false};  // released by the thread as its last deed, acquired before it is joined
  };

  void collect_finished() {
    for (auto running = running_.begin(); running != running_.end();) {
      if (!running->finished.load(std::memory_order_acquire)) {
        ++running;
        continue;
      }
      running->thread.join();
      running = running_.erase(running);
    }
  }

  const pid_t process_ = getpid();
  std::mutex mutex_;
  std::list<Running> running_;  // by mutex_
  // A forked child's copy of its parent's: its threads are not here, and its lock may be held by one of them. Kept, never
  // touched.
  Registry* const of_parent_;
};

// Owns this process's registry until static destruction. A registry of another process (we are its forked child) is left alone.
class Holder {
 public:
  Holder() { (void)log::enabled(log::Level::info); }  // so that the log outlives this
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  ~Holder() {
    Registry* const last = current_.load(std::memory_order_acquire);
    if (last == nullptr || last->process() != getpid()) return;
    current_.store(last->of_parent(), std::memory_order_release);
    const std::unique_ptr<Registry> owned(last);
  }

  Registry& of_this_process() {
    Registry* current = current_.load(std::memory_order_acquire);
    while (current == nullptr || current->process() != getpid()) {
      auto fresh = std::make_unique<Registry>(current);
      // If another thread was faster, `current` is its registry.
      if (current_.compare_exchange_strong(current, fresh.get(), std::memory_order_acq_rel)) return *fresh.release();
    }
    return *current;
  }

 private:
  std::atomic<Registry*> current_{nullptr};
};

Registry& registry() {
  static Holder holder;
  return holder.of_this_process();
}

}  // namespace

Status start_service(std::unique_ptr<RootService> service) { return registry().start(std::move(service)); }

bool service_runs_here(const link::Key& communicator) { return registry().runs(communicator); }

}  // namespace shoal::comm
