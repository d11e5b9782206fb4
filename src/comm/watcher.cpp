// SPDX-License-Identifier: Apache-2.0
#include "comm/watcher.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "comm/per_process.h"
#include "comm/signals_blocked.h"
#include "link/socket.h"

namespace shoal::comm {
namespace {

// What a signal handler can reach: the event of the running watcher, and that a dump is wanted.
constinit std::atomic<int> signal_event{-1};
constinit std::atomic<bool> dump_wanted{false};

void ring(int event) {
  const std::uint64_t one = 1;
  (void)!write(event, &one, sizeof one);
}

void on_signal(int) {
  const int error = errno;
  dump_wanted.store(true, std::memory_order_relaxed);
  if (const int event = signal_event.load(std::memory_order_relaxed); event >= 0) ring(event);
  errno = error;
}

class Watcher {
 public:
  Watcher() = default;
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;
  ~Watcher() {
    if (!thread_.joinable()) return;
    signal_event.store(-1);
    ending_.store(true);
    ring(event_.get());
    thread_.join();
  }

  Status add(Watched& watched) {
    const std::scoped_lock lock(mutex_);
    if (Status started = start(); !started.is_ok()) return started;
    watched_.push_back(&watched);
    ring(event_.get());
    return {};
  }
  void remove(Watched& watched) {
    const std::scoped_lock lock(mutex_);
    std::erase(watched_, &watched);
  }
  void look_again() { ring(event_.get()); }

 private:
  Status start() {
    if (thread_.joinable()) return {};
    event_ = link::Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!event_.is_open()) return fail(Code::system_error, "eventfd: {}", errno_text(errno));
    try {
      const SignalsBlocked blocked;
      thread_ = std::thread([this] { run(); });
    } catch (const std::system_error& error) {
      return fail(Code::system_error, "starting the thread that watches the control planes: {}", error.what());
    }
    signal_event.store(event_.get());
    return {};
  }

  void run() {
    (void)pthread_setname_np(pthread_self(), "shoal-watch");
    while (!ending_.load()) {
      collect();
      (void)poll(polled_.data(), polled_.size(), -1);
      std::array<std::uint64_t, 1> rung{};
      if (polled_.front().revents != 0) (void)!read(event_.get(), rung.data(), sizeof rung);
      serve();
    }
  }

  void collect() {
    polled_.assign(1, {event_.get(), POLLIN, 0});
    const std::scoped_lock lock(mutex_);
    served_ = watched_;
    for (const Watched* each : served_) {
      const link::Wakeup wakeup = each->wakeup();
      polled_.push_back({wakeup.descriptor, wakeup.events, 0});
    }
  }

  // Whoever is removed meanwhile waits for the lock, so nobody is served after unwatch.
  void serve() {
    const std::scoped_lock lock(mutex_);
    const bool dumping = dump_wanted.exchange(false, std::memory_order_relaxed);
    for (std::size_t i = 0; i < served_.size(); ++i) {
      if (polled_[i + 1].revents == 0 && !dumping) continue;
      if (std::find(watched_.begin(), watched_.end(), served_[i]) == watched_.end()) continue;
      if (polled_[i + 1].revents != 0) served_[i]->serve();
      if (dumping) served_[i]->dump();
    }
  }

  link::Descriptor event_;
  std::atomic<bool> ending_{false};
  std::mutex mutex_;  // also held while somebody is served
  std::vector<Watched*> watched_;  // under mutex_
  // The thread's own.
  std::vector<Watched*> served_;
  std::vector<pollfd> polled_;
  std::thread thread_;  // started under mutex_
};

PerProcess<Watcher>& watchers() {
  static PerProcess<Watcher> all;
  return all;
}

}  // namespace

Status watch(Watched& watched) { return watchers().get().add(watched); }

void unwatch(Watched& watched) {
  if (Watcher* const watcher = watchers().existing()) watcher->remove(watched);
}

void look_again() {
  if (Watcher* const watcher = watchers().existing()) watcher->look_again();
}

void dump_on_signal() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction before {};
    if (sigaction(SIGUSR2, nullptr, &before) != 0 || before.sa_handler != SIG_DFL) return;
    struct sigaction ours {};
    ours.sa_handler = on_signal;
    ours.sa_flags = SA_RESTART;
    (void)sigaction(SIGUSR2, &ours, nullptr);
  });
}

}  // namespace shoal::comm
