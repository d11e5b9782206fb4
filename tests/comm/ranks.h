// SPDX-License-Identifier: Apache-2.0
// Ranks for the tests of bootstrap and control: as threads, or as forked processes that report by a pipe. Loopback only.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "comm/bootstrap.h"
#include "core/environment.h"

namespace shoal::comm::testing {

inline constexpr std::chrono::milliseconds kLong{20'000};  // never reached by a test that passes

Environment loopback_environment();
link::PeerIdentity identity(int rank);
UniqueId new_id();

Result<Agreement> join(const UniqueId& id, int rank, int world, std::chrono::milliseconds timeout = kLong);
// One thread a rank; results by position in `ranks`.
std::vector<Result<Agreement>> join_all(const UniqueId& id, const std::vector<int>& ranks, int world,
                                        std::chrono::milliseconds timeout = kLong);
std::vector<int> ranks_below(int world);

// Drives progress until it fails; success after some 10 s.
Status wait_for_failure(Control& control);
// Drives progress for a moment; the last answer.
Status watch(Control& control, std::chrono::milliseconds how_long);

// "6 culprit 2: text"
std::string show(const Status& status);

// The thread sanitizer cannot follow a child of a process with threads that starts threads of its own.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kChildrenMayStartThreads = false;
#else
inline constexpr bool kChildrenMayStartThreads = true;
#endif

// A forked process. Its body's text goes to the parent line by line; no test macros inside.
class Process {
 public:
  using Say = std::function<void(const std::string&)>;
  explicit Process(const std::function<void(const Say&)>& body);
  Process(Process&& other) noexcept;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();  // kills and reaps

  // The next line; empty at the end or after some 20 s.
  std::string line();
  void kill();
  int id() const { return pid_; }

 private:
  int pid_ = -1;
  int pipe_ = -1;
  std::string read_;
};

// What this process holds.
int open_descriptors();
int threads();
// Waits, boundedly, until this is the only thread: the services of earlier communicators have ended.
bool settle();
// Waits, boundedly, until there are no more descriptors and threads than before; whether it came to that.
bool returns_to(int descriptors, int thread_count);

}  // namespace shoal::comm::testing
