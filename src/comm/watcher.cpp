// SPDX-License-Identifier: Apache-2.0
#include "comm/watcher.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "comm/per_process.h"
#include "core/signals.h"
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
    stop_thread().join();
  }

  Status add(Watched& watched) {
    const std::scoped_lock lock(mutex_);
    if (Status started = start(); !started.is_ok()) return started;
    watched_.push_back(&watched);
    ring(event_.get());
    return {};
  }
  void remove(Watched& watched) {
    std::thread last;
    {
      const std::scoped_lock lock(mutex_);
      std::erase(watched_, &watched);
      if (!thread_.joinable()) return;
      if (watched_.empty())
        last = stop_thread();
      else
        ring(event_.get());  // a connection ends for its peer only when nobody polls it any more
    }
    if (last.joinable()) last.join();
  }
  void look_again() { ring(event_.get()); }

 private:
  // One thread's work. Also held by the watcher, so that in a forked child, which has no such thread, nothing of it is lost.
  struct Shift {
    std::atomic<bool> ending{false};
    // The thread's own.
    std::vector<Watched*> served;
    std::vector<pollfd> polled;
  };

  Status start() {
    if (thread_.joinable()) return {};
    if (!event_.is_open()) event_ = link::Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!event_.is_open()) return fail(Code::system_error, "eventfd: {}", errno_text(errno));
    try {
      const SignalsBlocked blocked;
      shift_ = std::make_shared<Shift>();
      thread_ = std::thread([this, shift = shift_] { run(*shift); });
    } catch (const std::system_error& error) {
      return fail(Code::system_error, "starting the thread that watches the control planes: {}", error.what());
    }
    signal_event.store(event_.get());
    return {};
  }

  // What is returned ends by itself.
  std::thread stop_thread() {
    signal_event.store(-1);
    shift_->ending.store(true);
    ring(event_.get());
    return std::move(thread_);
  }

  void run(Shift& shift) {
    (void)pthread_setname_np(pthread_self(), "shoal-watch");
    while (!shift.ending.load()) {
      collect(shift.served, shift.polled);
      (void)poll(shift.polled.data(), shift.polled.size(), -1);
      std::uint64_t rung = 0;
      if (shift.polled.front().revents != 0 && !shift.ending.load()) (void)!read(event_.get(), &rung, sizeof rung);
      serve(shift.served, shift.polled);
    }
  }

  void collect(std::vector<Watched*>& served, std::vector<pollfd>& polled) {
    const std::scoped_lock lock(mutex_);
    polled.assign(1, {event_.get(), POLLIN, 0});
    served = watched_;
    for (const Watched* each : served) {
      const link::Wakeup wakeup = each->wakeup();
      polled.push_back({wakeup.descriptor, wakeup.events, 0});
    }
  }

  // Whoever is removed meanwhile waits for the lock, so nobody is served after unwatch.
  void serve(const std::vector<Watched*>& served, const std::vector<pollfd>& polled) {
    const std::scoped_lock lock(mutex_);
    const bool dumping = dump_wanted.exchange(false, std::memory_order_relaxed);
    for (std::size_t i = 0; i < served.size(); ++i) {
      if (polled[i + 1].revents == 0 && !dumping) continue;
      if (std::find(watched_.begin(), watched_.end(), served[i]) == watched_.end()) continue;
      if (polled[i + 1].revents != 0) served[i]->serve();
      if (dumping) served[i]->dump();
    }
  }

  std::mutex mutex_;               // also held while somebody is served
  link::Descriptor event_;         // opened once, under mutex_
  std::vector<Watched*> watched_;  // under mutex_
  std::thread thread_;             // there while somebody is watched; under mutex_
  std::shared_ptr<Shift> shift_;   // of that thread; under mutex_
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
