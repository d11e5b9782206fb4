// SPDX-License-Identifier: Apache-2.0
#include "comm/job.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

namespace shoal::comm {
namespace {

constexpr int kGenerations = 32;

struct Process {
  int parent = 0;
  std::string command;
  std::string start_time;  // clock ticks since boot
};

// /proc/<pid>/stat: "pid (command) state ppid ... starttime(22nd) ..."; the command may hold spaces and parentheses.
std::optional<Process> look_up(int pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::size_t open = text.find('(');
  const std::size_t close = text.rfind(')');
  if (open == std::string::npos || close == std::string::npos) return std::nullopt;
  Process process;
  process.command = text.substr(open + 1, close - open - 1);
  std::istringstream rest(text.substr(close + 1));
  std::string field;
  for (int number = 3; rest >> field; ++number) {
    if (number == 4) process.parent = std::stoi(field);
    if (number == 22) process.start_time = field;
  }
  return process;
}

std::string name(int pid, const Process& process) { return fmt::format("{}.{}", pid, process.start_time); }

}  // namespace

std::string ancestor_job(std::string_view launcher) {
  int pid = getppid();
  std::string parent = std::to_string(pid);
  for (int generation = 0; generation < kGenerations && pid > 0; ++generation) {
    const std::optional<Process> process = look_up(pid);
    if (!process) break;
    if (generation == 0) parent = name(pid, *process);
    if (launcher.empty()) break;
    if (process->command == launcher) return name(pid, *process);
    pid = process->parent;
  }
  return parent;
}

}  // namespace shoal::comm
