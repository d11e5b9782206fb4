// SPDX-License-Identifier: Apache-2.0
#include "comm/ranks.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <thread>
#include <utility>

// Forked children of these tests start threads of their own, which the thread sanitizer does not expect.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_options() { return "die_after_fork=0"; }

namespace shoal::comm::testing {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

Environment loopback_environment() {
  Environment environment;
  environment.socket_ifname = "=lo";
  return environment;
}

link::PeerIdentity identity(int rank) {
  link::PeerIdentity self;
  self.rank = Rank{rank};
  self.host = "node" + std::to_string(rank);
  self.host_id = "host-id";
  self.process = 1000 + static_cast<std::uint64_t>(rank);
  self.pid = getpid();
  self.address = "127.0.0.1:" + std::to_string(5000 + rank);
  self.local_address = "local-" + std::to_string(rank);
  return self;
}

UniqueId new_id() {
  Result<UniqueId> id = make_unique_id(loopback_environment());
  return id.is_ok() ? id.take() : UniqueId{};
}

Result<Agreement> join(const UniqueId& id, int rank, int world, std::chrono::milliseconds timeout) {
  return bootstrap({&id, 1}, Rank{rank}, World{world}, identity(rank), "settings of " + std::to_string(rank),
                   loopback_environment(), timeout);
}

std::vector<Result<Agreement>> join_all(const UniqueId& id, const std::vector<int>& ranks, int world,
                                        std::chrono::milliseconds timeout) {
  std::vector<Result<Agreement>> results;
  for (std::size_t i = 0; i < ranks.size(); ++i) results.emplace_back(Status(Code::internal_error, "did not run"));
  std::vector<std::thread> workers;
  for (std::size_t i = 0; i < ranks.size(); ++i)
    workers.emplace_back([&, i] { results[i] = join(id, ranks[i], world, timeout); });
  for (std::thread& worker : workers) worker.join();
  return results;
}

std::vector<int> ranks_below(int world) {
  std::vector<int> ranks;
  for (int rank = 0; rank < world; ++rank) ranks.push_back(rank);
  return ranks;
}

Status watch(Control& control, std::chrono::milliseconds how_long) {
  const Clock::time_point end = Clock::now() + how_long;
  Status status = control.progress();
  while (status.is_ok() && Clock::now() < end) {
    const link::Wakeup wakeup = control.wakeup();
    pollfd waiting{wakeup.descriptor, wakeup.events, 0};
    (void)poll(&waiting, 1, 20);
    status = control.progress();
  }
  return status;
}

Status wait_for_failure(Control& control) { return watch(control, 10s); }

std::string show(const Status& status) {
  return fmt::format("{} culprit {}: {}", static_cast<int>(status.code()), status.culprit() ? status.culprit()->value : -1,
                     status.text());
}

Process::Process(const std::function<void(const Say&)>& body) {
  int ends[2];
  if (::pipe(ends) != 0) return;
  pid_ = fork();
  if (pid_ == 0) {
    ::close(ends[0]);
    alarm(60);  // whatever happens to the parent
    body([&](const std::string& text) {
      const std::string whole = text + "\n";
      (void)!::write(ends[1], whole.data(), whole.size());
    });
    _exit(0);
  }
  ::close(ends[1]);
  pipe_ = ends[0];
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), pipe_(std::exchange(other.pipe_, -1)), read_(std::move(other.read_)) {}

Process::~Process() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    (void)waitpid(pid_, nullptr, 0);
  }
  if (pipe_ >= 0) ::close(pipe_);
}

void Process::kill() { ::kill(pid_, SIGKILL); }

std::string Process::line() {
  const Clock::time_point end = Clock::now() + 20s;
  while (Clock::now() < end) {
    if (const std::size_t stop = read_.find('\n'); stop != std::string::npos) {
      std::string line = read_.substr(0, stop);
      read_.erase(0, stop + 1);
      return line;
    }
    pollfd waiting{pipe_, POLLIN, 0};
    if (poll(&waiting, 1, 100) <= 0) continue;
    char piece[512];
    const ssize_t got = ::read(pipe_, piece, sizeof piece);
    if (got <= 0) return "";
    read_.append(piece, static_cast<std::size_t>(got));
  }
  return "";
}

namespace {
int entries(const char* folder) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) count += entry.path().empty() ? 0 : 1;
  return count;
}
}  // namespace

// The thread sanitizer has one of its own.
#if defined(__SANITIZE_THREAD__)
constexpr int kOwnThreads = 2;
#else
constexpr int kOwnThreads = 1;
#endif

int open_descriptors() { return entries("/proc/self/fd"); }
int threads() { return entries("/proc/self/task"); }

bool settle() { return returns_to(open_descriptors(), kOwnThreads); }

bool returns_to(int descriptors, int thread_count) {
  const Clock::time_point end = Clock::now() + 10s;
  while (open_descriptors() > descriptors || threads() > thread_count) {
    if (Clock::now() >= end) return false;
    std::this_thread::sleep_for(5ms);
  }
  return true;
}

}  // namespace shoal::comm::testing
