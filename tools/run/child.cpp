// SPDX-License-Identifier: Apache-2.0
#include "tools/run/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

namespace shoal::run {
namespace {

std::optional<std::string> random_hex(std::size_t bytes) {
  std::string hex;
  for (std::size_t i = 0; i < bytes; ++i) {
    unsigned char byte = 0;
    if (::getrandom(&byte, 1, 0) != 1) return std::nullopt;
    hex += fmt::format("{:02x}", byte);
  }
  return hex;
}

// execve wants char* const[]; it does not write through them.
std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

struct Pipe {
  std::array<int, 2> ends = {-1, -1};  // read, write
  bool open() { return ::pipe2(ends.data(), O_CLOEXEC) == 0; }
  void close_end(std::size_t i) {
    if (ends[i] >= 0) ::close(ends[i]);
    ends[i] = -1;
  }
  int release_read() { return std::exchange(ends[0], -1); }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
};

// What the child reports when it cannot become the command.
struct Refusal {
  int error = 0;
  int call = 0;  // index into kCalls
};
constexpr std::array<const char*, 4> kCalls = {"execvp", "dup2", "sched_setaffinity", "prctl"};

// In the child: becomes the command or says why not. Only system calls from here on.
[[noreturn]] void become(const ChildPlan& plan, char* const* argv, char* const* envp, pid_t launcher, int out, int err,
                         int report) {
  const auto refuse = [report](int call) {
    const Refusal refusal{errno, call};
    (void)!::write(report, &refusal, sizeof refusal);
    ::_exit(127);
  };
  ::setpgid(0, 0);
  // SIGKILL cannot be missed. If the launcher died before the request stood, nobody would send it.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) refuse(3);
  if (::getppid() != launcher) ::_exit(127);
  if (plan.core) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(static_cast<std::size_t>(*plan.core), &cores);
    if (::sched_setaffinity(0, sizeof cores, &cores) != 0) refuse(2);
  }
  if (!plan.takes_input) {
    const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing < 0 || ::dup2(nothing, STDIN_FILENO) < 0) refuse(1);
  }
  if (::dup2(out, STDOUT_FILENO) < 0 || ::dup2(err, STDERR_FILENO) < 0) refuse(1);
  ::setrlimit(RLIMIT_NOFILE, &plan.inherited->descriptors);
  ::signal(SIGPIPE, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &plan.inherited->mask, nullptr);
  ::execvpe(argv[0], argv, envp);
  refuse(0);
  ::_exit(127);
}

}  // namespace

std::optional<Job> make_job(int ranks) {
  const auto id = random_hex(16);
  const auto secret = random_hex(32);
  if (!id || !secret) return std::nullopt;
  return Job{ranks, *id, *secret};
}

std::vector<std::string> rank_environment(const Job& job, int rank) {
  std::vector<std::string> ours = {fmt::format("SHOAL_RANK={}", rank),       fmt::format("SHOAL_WORLD_SIZE={}", job.ranks),
                                   fmt::format("SHOAL_LOCAL_RANK={}", rank), fmt::format("SHOAL_LOCAL_WORLD_SIZE={}", job.ranks),
                                   fmt::format("SHOAL_JOB={}", job.id),      fmt::format("SHOAL_SECRET={}", job.secret)};
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    bool replaced = false;
    for (const std::string& own : ours)
      replaced = replaced || text.starts_with(std::string_view(own).substr(0, own.find('=') + 1));
    if (!replaced) result.emplace_back(text);
  }
  result.insert(result.end(), ours.begin(), ours.end());
  return result;
}

Child start_child(const ChildPlan& plan) {
  Pipe out, err, report;
  if (!out.open() || !err.open() || !report.open()) return {.error = errno, .failed_call = "pipe2"};
  const std::vector<char*> argv = pointers(*plan.command), envp = pointers(plan.environment);
  const pid_t launcher = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return {.error = errno, .failed_call = "fork"};
  if (pid == 0) become(plan, argv.data(), envp.data(), launcher, out.ends[1], err.ends[1], report.ends[1]);
  ::setpgid(pid, pid);  // here as well: whoever is first
  report.close_end(1);
  Refusal refusal;
  ssize_t got = 0;
  while ((got = ::read(report.ends[0], &refusal, sizeof refusal)) < 0 && errno == EINTR) {
  }
  if (got == sizeof refusal) {
    ::waitpid(pid, nullptr, 0);
    return {.error = refusal.error, .failed_call = kCalls[static_cast<std::size_t>(refusal.call)]};
  }
  return {.pid = pid, .out_fd = out.release_read(), .err_fd = err.release_read()};
}

std::vector<int> allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(static_cast<std::size_t>(i), &set)) cores.push_back(i);
  }
  return cores;
}

}  // namespace shoal::run
