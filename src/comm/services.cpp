// SPDX-License-Identifier: Apache-2.0
#include "comm/services.h"

#include <pthread.h>

#include <atomic>
#include <list>
#include <mutex>
#include <system_error>
#include <thread>

#include "comm/per_process.h"
#include "core/signals.h"
#include "link/remote_fence.h"

namespace shoal::comm {
namespace {

class Registry {
 public:
  Registry() = default;
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;
  ~Registry() {
    const std::scoped_lock lock(mutex_);
    for (Running& running : running_) running.service->stop();
    for (Running& running : running_) running.thread.join();
  }

  bool runs(const link::Key& communicator) {
    const std::scoped_lock lock(mutex_);
    for (const Running& running : running_)
      if (running.service->key() == communicator && !running.finished.load(std::memory_order_acquire)) return true;
    return false;
  }

  Status start(std::unique_ptr<RootService> service) {
    const std::scoped_lock lock(mutex_);
    link::RemoteFence::join();  // at once while there is one thread; later the kernel waits for all processors, 5 to 10 ms
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

  std::mutex mutex_;
  std::list<Running> running_;  // by mutex_
};

Registry& registry() {
  static PerProcess<Registry> registries;
  return registries.get();
}

}  // namespace

Status start_service(std::unique_ptr<RootService> service) { return registry().start(std::move(service)); }

bool service_runs_here(const link::Key& communicator) { return registry().runs(communicator); }

}  // namespace shoal::comm
