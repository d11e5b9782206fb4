// SPDX-License-Identifier: Apache-2.0
// Starting one rank: a process in its own process group that dies with the launcher. Called from the launcher's only thread.
#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace shoal::run {

// What all ranks share.
struct Job {
  int ranks = 0;
  std::string id;      // 32 hex digits, fresh for each run
  std::string secret;  // 64 hex digits
};
// Draws id and secret from the kernel; nothing if it has none to give.
std::optional<Job> make_job(int ranks);

// The environment of one rank, as "NAME=value": the launcher's own, with Shoal's variables replaced.
std::vector<std::string> rank_environment(const Job& job, int rank);

// How the launcher found its process: children get these back.
struct Inherited {
  sigset_t mask = {};
  rlimit descriptors = {};
};

struct ChildPlan {
  const std::vector<std::string>* command = nullptr;
  std::vector<std::string> environment;
  std::optional<int> core;   // pin to this core
  bool takes_input = false;  // else standard input is empty
  const Inherited* inherited = nullptr;
};

struct Child {
  pid_t pid = -1;
  int out_fd = -1;  // read ends; the caller closes them
  int err_fd = -1;
  int error = 0;                 // not 0: there is no process; the error number of `failed_call`
  const char* failed_call = "";  // "execvp" if the command could not be started
};
Child start_child(const ChildPlan& plan);

// The cores that this process may run on, ascending.
std::vector<int> allowed_cores();

}  // namespace shoal::run
