// SPDX-License-Identifier: Apache-2.0
#include "tools/run/job.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <initializer_list>
#include <system_error>

namespace shoal::run {
namespace {

using namespace std::chrono_literals;

constexpr auto kLastWords = 1s;  // between the first failure and SIGTERM: other ranks wait 200 ms for what the dead one had sent
constexpr auto kGrace = 3s;      // between SIGTERM and SIGKILL
constexpr auto kDrain = 1s;      // for output of processes that a rank left behind
constexpr auto kPromptIdle = 200;  // ms without output after which a terminal shows an unfinished line
constexpr int kCannotStart = 126, kNotFound = 127, kTimedOut = 124;

std::string signal_name(int number) {
  const char* name = ::sigabbrev_np(number);
  return name != nullptr ? fmt::format("signal {} (SIG{})", number, name) : fmt::format("signal {}", number);
}

std::string error_text(int number) { return std::generic_category().message(number); }

// Signals the launcher takes from a descriptor. What was ignored when it started (nohup, a background job) stays so.
sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGTSTP}) {
    struct sigaction action = {};
    ::sigaction(number, nullptr, &action);
    if (number == SIGCHLD || action.sa_handler != SIG_IGN) sigaddset(&set, number);
  }
  return set;
}

}  // namespace

JobRunner::JobRunner(const Options& options) : options_(options), out_(STDOUT_FILENO), err_(STDERR_FILENO) {}

JobRunner::~JobRunner() {
  clean_up();
  if (signal_fd_ >= 0) ::close(signal_fd_);
}

int JobRunner::run() {
  if (prepare() && start_all()) {
    loop();
  } else if (!processes_.empty()) {
    enter(Phase::terminating, kGrace);
    loop();
  }
  clean_up();
  while (err_.has_pending()) err_.write_some();
  return exit_code_.value_or(0);
}

bool JobRunner::prepare() {
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGCHLD, SIG_DFL);  // an inherited "ignore" would take the exit statuses away
  const sigset_t watched = watched_signals();
  ::sigprocmask(SIG_BLOCK, &watched, &inherited_.mask);
  signal_fd_ = ::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
  ::getrlimit(RLIMIT_NOFILE, &inherited_.descriptors);
  // Two pipes a rank, and some for the launcher itself.
  const rlim_t need = 2 * static_cast<rlim_t>(options_.ranks) + 32;
  rlimit raised = inherited_.descriptors;
  raised.rlim_cur = std::min(std::max(raised.rlim_cur, need), raised.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &raised);
  if (raised.rlim_cur < need) {
    exit_code_ = kRefused;
    say(fmt::format("-n/--ranks {}: needs {} descriptors, the limit is {} (ulimit -n)", options_.ranks, need, raised.rlim_max));
  } else if (signal_fd_ < 0) {
    exit_code_ = 1;
    say(fmt::format("signalfd: {}", error_text(errno)));
  }
  return !exit_code_;
}

bool JobRunner::start_all() {
  const auto job = make_job(options_.ranks);
  if (!job) {
    exit_code_ = 1;
    say(fmt::format("getrandom: {}", error_text(errno)));
    return false;
  }
  const std::vector<int> cores = options_.binding == Binding::core ? allowed_cores() : std::vector<int>{};
  for (int rank = 0; rank < options_.ranks; ++rank) {
    if (!start_one(*job, rank, cores)) return false;
  }
  if (options_.timeout_s > 0) {
    timeout_at_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options_.timeout_s));
  }
  return true;
}

bool JobRunner::start_one(const Job& job, int rank, const std::vector<int>& cores) {
  ChildPlan plan{.command = &options_.command,
                 .environment = rank_environment(job, rank),
                 .takes_input = rank == 0 && ::isatty(STDIN_FILENO) == 0,
                 .inherited = &inherited_};
  if (!cores.empty()) plan.core = cores[static_cast<std::size_t>(rank) % cores.size()];
  const Child child = start_child(plan);
  if (child.error != 0) {
    const bool command_is_wrong = std::strcmp(child.failed_call, "execvp") == 0;
    exit_code_ = !command_is_wrong ? 1 : child.error == ENOENT ? kNotFound : kCannotStart;
    say(command_is_wrong ? fmt::format("{}: {}", options_.command.front(), error_text(child.error))
                         : fmt::format("rank {} cannot start: {}: {}", rank, child.failed_call, error_text(child.error)));
    return false;
  }
  const bool labelled = options_.labels == Labels::all || (options_.labels == Labels::others && rank != 0);
  processes_.emplace_back(rank, child, labelled ? fmt::format("[{}] ", rank) : "", options_.ranks == 1 && !labelled);
  return true;
}

void JobRunner::loop() {
  while (!finished()) {
    wait_for_events();
    handle_signals();
    collect_ends();
    handle_deadlines();
  }
}

// All ranks have ended and their output is through; processes that a rank left behind get kDrain for theirs.
bool JobRunner::finished() {
  if (!std::all_of(processes_.begin(), processes_.end(), [](const auto& process) { return process.ended; })) return false;
  if (!drain_ends_at_) drain_ends_at_ = Clock::now() + kDrain;
  const bool all_read =
      std::all_of(processes_.begin(), processes_.end(), [](const auto& p) { return p.out_fd < 0 && p.err_fd < 0; });
  if (!all_read && Clock::now() < *drain_ends_at_) return false;
  clean_up();
  return !out_.has_pending() && !err_.has_pending();
}

void JobRunner::wait_for_events() {
  std::vector<pollfd> polled = {{signal_fd_, POLLIN, 0},
                                {out_.has_pending() ? out_.fd() : -1, POLLOUT, 0},
                                {err_.has_pending() ? err_.fd() : -1, POLLOUT, 0}};
  for (const RankProcess& process : processes_) {  // poll skips descriptors below 0
    polled.push_back({out_.full() ? -1 : process.out_fd, POLLIN, 0});
    polled.push_back({err_.full() ? -1 : process.err_fd, POLLIN, 0});
  }
  const int ready = ::poll(polled.data(), polled.size(), milliseconds_to_next_event());
  if (ready == 0) {
    for (RankProcess& process : processes_) {
      if (out_.is_terminal()) process.out.flush(out_);
      if (err_.is_terminal()) process.err.flush(err_);
    }
  }
  if (ready <= 0) return;
  if (polled[1].revents != 0) out_.write_some();
  if (polled[2].revents != 0) err_.write_some();
  std::size_t at = 3;
  for (RankProcess& process : processes_) {
    if (polled[at++].revents != 0) read_from(process.out_fd, process.out, out_);
    if (polled[at++].revents != 0) read_from(process.err_fd, process.err, err_);
  }
  if (out_.broken() && !exit_code_) {  // as for `program | head`: quietly
    exit_code_ = 128 + SIGPIPE;
    enter(Phase::terminating, kGrace);
  }
}

void JobRunner::read_from(int& fd, LineStream& stream, Sink& sink) {
  std::array<char, 65536> bytes;
  const ssize_t got = ::read(fd, bytes.data(), bytes.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got > 0) {
    stream.take({bytes.data(), static_cast<std::size_t>(got)}, sink);
    return;
  }
  stream.flush(sink);
  ::close(fd);
  fd = -1;
}

void JobRunner::handle_signals() {
  signalfd_siginfo info = {};
  while (::read(signal_fd_, &info, sizeof info) == sizeof info) {
    if (info.ssi_signo != SIGCHLD) handle_signal(static_cast<int>(info.ssi_signo));
  }
}

void JobRunner::handle_signal(int number) {
  if (number == SIGTSTP) {  // the ranks' groups are not the terminal's: stop and continue them here
    signal_all(SIGTSTP);
    ::raise(SIGSTOP);
    signal_all(SIGCONT);
    return;
  }
  const bool ending = number == SIGINT || number == SIGTERM;
  if (ending && running_ranks().empty()) {  // nobody takes our output any more
    exit_code_ = exit_code_.value_or(128 + number);
    drain_ends_at_ = Clock::now();
    out_ = Sink(-1);
    err_ = Sink(-1);
    return;
  }
  if (ending && asked_to_end_ && phase_ < Phase::terminating) {
    exit_code_ = exit_code_.value_or(128 + number);
    enter(Phase::terminating, kGrace);
    return;
  }
  asked_to_end_ = asked_to_end_ || ending;
  signal_all(number);
}

void JobRunner::collect_ends() {
  for (RankProcess& process : processes_) {
    if (process.ended) continue;
    siginfo_t info = {};
    if (::waitid(P_PID, static_cast<id_t>(process.pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) continue;
    process.ended = true;
    judge(process, info);
  }
}

void JobRunner::judge(const RankProcess& process, const siginfo_t& info) {
  const bool exited = info.si_code == CLD_EXITED;
  if ((exited && info.si_status == 0) || exit_code_) return;  // the first failure is the one to tell
  exit_code_ = exited ? info.si_status : 128 + info.si_status;
  const std::string what =
      exited ? fmt::format("exited with status {}", info.si_status)
             : fmt::format("was ended by {}{}", signal_name(info.si_status), info.si_code == CLD_DUMPED ? ", core dumped" : "");
  say(fmt::format("rank {} (pid {}) {}", process.rank, process.pid, what));
  if (phase_ == Phase::running) enter(Phase::failed, kLastWords);
}

void JobRunner::handle_deadlines() {
  const auto now = Clock::now();
  if (timeout_at_ && now >= *timeout_at_ && phase_ == Phase::running && !running_ranks().empty()) {
    exit_code_ = kTimedOut;
    say(fmt::format("timeout after {:g} s: still running: rank {}", options_.timeout_s, cli::rank_list(running_ranks())));
    enter(Phase::terminating, kGrace);
  }
  if (!phase_ends_at_ || now < *phase_ends_at_) return;
  if (running_ranks().empty()) {
    phase_ends_at_.reset();
  } else if (phase_ == Phase::failed) {
    enter(Phase::terminating, kGrace);
  } else if (phase_ == Phase::terminating) {
    say(fmt::format("killed {:g} s after SIGTERM: rank {}", std::chrono::duration<double>(kGrace).count(),
                    cli::rank_list(running_ranks())));
    enter(Phase::killed, std::nullopt);
  }
}

void JobRunner::enter(Phase phase, std::optional<Clock::duration> stay) {
  phase_ = phase;
  phase_ends_at_ = stay ? std::optional(Clock::now() + *stay) : std::nullopt;
  if (phase == Phase::terminating) {
    signal_all(SIGTERM);
    signal_all(SIGCONT);  // a stopped process dies of nothing but SIGKILL
  }
  if (phase == Phase::killed) signal_all(SIGKILL);
}

// To whole groups: what a rank started gets it, too.
void JobRunner::signal_all(int number) {
  for (const RankProcess& process : processes_) ::kill(-process.pid, number);
}

void JobRunner::say(const std::string& text) {
  err_.begin(this);
  err_.add("shoal-run: " + text + "\n");
}

int JobRunner::milliseconds_to_next_event() const {
  std::optional<Clock::time_point> next;
  for (const auto& deadline : {phase_ == Phase::running ? timeout_at_ : std::nullopt, phase_ends_at_,
                               processes_.empty() ? std::nullopt : drain_ends_at_}) {
    if (deadline && (!next || *deadline < *next)) next = deadline;
  }
  int wait = -1;
  if (next) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - Clock::now()).count();
    wait = static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000));
  }
  const bool prompts = std::any_of(processes_.begin(), processes_.end(), [this](const RankProcess& process) {
    return (out_.is_terminal() && process.out.holds_partial()) || (err_.is_terminal() && process.err.holds_partial());
  });
  if (prompts) wait = wait < 0 ? kPromptIdle : std::min(wait, kPromptIdle);
  return wait;
}

std::vector<int> JobRunner::running_ranks() const {
  std::vector<int> ranks;
  for (const RankProcess& process : processes_) {
    if (!process.ended) ranks.push_back(process.rank);
  }
  return ranks;
}

// Whatever is left of the ranks' groups ends here; then the zombies may go.
void JobRunner::clean_up() {
  signal_all(SIGKILL);
  for (RankProcess& process : processes_) {
    ::waitpid(process.pid, nullptr, 0);
    if (process.out_fd >= 0) process.out.flush(out_);
    if (process.err_fd >= 0) process.err.flush(err_);
    for (const int fd : {process.out_fd, process.err_fd}) {
      if (fd >= 0) ::close(fd);
    }
  }
  processes_.clear();  // their numbers may be somebody else's from now on
}

}  // namespace shoal::run
