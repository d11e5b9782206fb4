// SPDX-License-Identifier: Apache-2.0
// Runs a program to its end and keeps what it said. For tests: one thread, everything bounded by a deadline.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace shoal::testing {

struct Finished {
  int code = -1;    // exit code; 128 + signal for a signal; -1: it had to be killed at the deadline
  std::string out;  // standard output
  std::string err;
};

struct SpawnOptions {
  std::vector<std::pair<std::string, std::string>> environment;  // set on top of ours
  std::string input;                                             // a file for standard input; "": /dev/null
  std::chrono::seconds deadline{60};
  // Called with the process number and what standard output held so far, each time some came in or 20 ms passed.
  std::function<void(pid_t, const std::string&)> watch;
};

inline Finished spawn(const std::vector<std::string>& command, const SpawnOptions& options = {}) {
  std::array<int, 2> out = {}, err = {};
  if (::pipe2(out.data(), O_CLOEXEC) != 0 || ::pipe2(err.data(), O_CLOEXEC) != 0) return {};
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    const int input = ::open(options.input.empty() ? "/dev/null" : options.input.c_str(), O_RDONLY | O_CLOEXEC);
    ::dup2(input, 0);
    ::dup2(out[1], 1);
    ::dup2(err[1], 2);
    for (const auto& [name, value] : options.environment) ::setenv(name.c_str(), value.c_str(), 1);
    ::execvp(argv[0], argv.data());
    ::_exit(99);
  }
  ::close(out[1]);
  ::close(err[1]);

  Finished finished;
  const auto end = std::chrono::steady_clock::now() + options.deadline;
  std::array<pollfd, 2> polled = {pollfd{out[0], POLLIN, 0}, pollfd{err[0], POLLIN, 0}};
  bool killed = false;
  while (polled[0].fd >= 0 || polled[1].fd >= 0) {
    if (!killed && std::chrono::steady_clock::now() > end) {
      ::kill(pid, SIGKILL);
      killed = true;
    }
    ::poll(polled.data(), polled.size(), 20);
    for (std::size_t i = 0; i < 2; ++i) {
      if (polled[i].fd < 0 || polled[i].revents == 0) continue;
      std::array<char, 65536> bytes = {};
      const ssize_t got = ::read(polled[i].fd, bytes.data(), bytes.size());
      if (got > 0) {
        (i == 0 ? finished.out : finished.err).append(bytes.data(), static_cast<std::size_t>(got));
      } else {
        ::close(polled[i].fd);
        polled[i].fd = -1;
      }
    }
    if (options.watch) options.watch(pid, finished.out);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (!killed) finished.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return finished;
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

}  // namespace shoal::testing
