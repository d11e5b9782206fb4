// SPDX-License-Identifier: Apache-2.0
// One run of the launcher: starts the ranks, passes output and signals on, and ends all when one fails. One event loop, in the
// thread that calls run(); that thread must be the process's only one (children die with the thread that started them).
#pragma once

#include <signal.h>

#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "tools/run/child.h"
#include "tools/run/options.h"
#include "tools/run/output.h"

namespace shoal::run {

class JobRunner {
 public:
  explicit JobRunner(const Options& options);
  ~JobRunner();
  JobRunner(const JobRunner&) = delete;
  JobRunner& operator=(const JobRunner&) = delete;

  // Returns the launcher's exit code. Call once.
  int run();

 private:
  using Clock = std::chrono::steady_clock;
  // A rank's process. Its zombie stays until the end of the run, so that its number and group cannot mean somebody else.
  struct RankProcess {
    RankProcess(int number, Child child, const std::string& label, bool raw)
        : rank(number), pid(child.pid), out_fd(child.out_fd), err_fd(child.err_fd), out(label, raw), err(label, raw) {}
    int rank;
    pid_t pid;
    int out_fd, err_fd;  // -1 once at its end
    LineStream out, err;
    bool ended = false;
  };
  enum class Phase {
    running,
    failed,       // a rank failed; the others have a moment to say what they saw and end by themselves
    terminating,  // SIGTERM is sent
    killed        // SIGKILL is sent
  };

  bool prepare();
  bool start_all();
  bool start_one(const Job& job, int rank, const std::vector<int>& cores);
  void loop();
  bool finished();
  void wait_for_events();
  void read_from(int& fd, LineStream& stream, Sink& sink);
  void handle_signals();
  void handle_signal(int number);
  void collect_ends();
  void judge(const RankProcess& process, const siginfo_t& info);
  void handle_deadlines();
  void enter(Phase phase, std::optional<Clock::duration> stay);
  void signal_all(int number);
  void say(const std::string& text);
  int milliseconds_to_next_event() const;
  std::vector<int> running_ranks() const;
  void clean_up();

  Options options_;
  Inherited inherited_;
  int signal_fd_ = -1;
  Sink out_, err_;
  std::deque<RankProcess> processes_;  // a deque: streams are known by address
  Phase phase_ = Phase::running;
  std::optional<int> exit_code_;  // of the first failure
  bool asked_to_end_ = false;     // SIGINT or SIGTERM was passed on; the next one ends the ranks
  std::optional<Clock::time_point> timeout_at_, phase_ends_at_, drain_ends_at_;
};

}  // namespace shoal::run
