// SPDX-License-Identifier: Apache-2.0
#include "support/ranks.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

namespace testing {
namespace {

using Clock = std::chrono::steady_clock;

struct Child {
  pid_t pid = -1;
  int pipe = -1;  // its complaint
  std::string text;
  bool open = true;
};

Child start(const Variables& variables, const std::function<std::string()>& body) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return {};
  const pid_t pid = fork();
  if (pid == 0) {
    close(ends[0]);
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    std::string text;
    try {
      text = body();
    } catch (const std::exception& error) {
      text = std::string("exception: ") + error.what();
    }
    if (text.size() > 60000) text.resize(60000);
    const ssize_t written = write(ends[1], text.data(), text.size());
    // exit, not _exit: destructors and leak checks are part of what is tested.
    exit(written == static_cast<ssize_t>(text.size()) && text.empty() ? 0 : 1);
  }
  close(ends[1]);
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return {pid, ends[0], "", true};
}

// Reads some of what there is; false if there is nothing, or never again.
bool drain(Child& child) {
  std::array<char, 4096> block{};
  const ssize_t n = read(child.pipe, block.data(), block.size());
  if (n > 0) child.text.append(block.data(), static_cast<std::size_t>(n));
  return n > 0;
}

// Reads the pipes until all are closed or time is up; then reaps, killing what still runs.
std::vector<std::string> collect(std::vector<Child>& children, int seconds, const std::vector<int>& may_die) {
  const auto until = Clock::now() + std::chrono::seconds(seconds);
  const auto some_open = [&] {
    return std::any_of(children.begin(), children.end(), [](const Child& child) { return child.open; });
  };
  while (some_open() && Clock::now() < until) {
    std::vector<pollfd> set;
    for (const Child& child : children) set.push_back({child.open ? child.pipe : -1, POLLIN, 0});
    poll(set.data(), set.size(), 100);
    for (std::size_t i = 0; i < children.size(); ++i)
      if (set[i].revents != 0) children[i].open = drain(children[i]);
  }
  std::vector<std::string> complaints;
  for (std::size_t i = 0; i < children.size(); ++i) {
    Child& child = children[i];
    int status = 0;
    pid_t reaped = 0;
    while ((reaped = waitpid(child.pid, &status, WNOHANG)) == 0 && Clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const bool late = reaped == 0;
    if (late) {
      kill(child.pid, SIGKILL);
      waitpid(child.pid, &status, 0);
    }
    while (drain(child)) {
    }  // what it said at the last moment
    close(child.pipe);
    std::string text = child.text;
    if (late) text += " [still running after " + std::to_string(seconds) + " s]";
    if (WIFSIGNALED(status) && !late) text += std::string(" [died of ") + strsignal(WTERMSIG(status)) + "]";
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0 && text.empty())
      text = " [exit status " + std::to_string(WEXITSTATUS(status)) + "]";
    const bool excused = std::find(may_die.begin(), may_die.end(), static_cast<int>(i)) != may_die.end();
    complaints.push_back(excused ? "" : text);
  }
  return complaints;
}

std::string join(const std::vector<std::string>& complaints) {
  std::string all;
  for (std::size_t i = 0; i < complaints.size(); ++i)
    if (!complaints[i].empty()) all += "rank " + std::to_string(i) + ": " + complaints[i] + "\n";
  return all;
}

}  // namespace

Variables transport_variables(const std::string& transport) {
  const char* const only = std::getenv("SHOAL_TEST_TRANSPORT");
  const char* const without_verbs = only != nullptr && std::string(only) == "verbs" ? "0" : "1";
  if (transport == "tcp") return {{"NCCL_SHM_DISABLE", "1"}, {"SHOAL_LOOPBACK_DISABLE", "1"}, {"NCCL_IB_DISABLE", without_verbs}};
  if (transport == "ucx") return {{"NCCL_NET", "UCX"}, {"NCCL_SHM_DISABLE", "1"}, {"SHOAL_LOOPBACK_DISABLE", "1"}};
  if (transport == "shm") return {{"SHOAL_LOOPBACK_DISABLE", "1"}};
  return {};
}

std::string in_child(const Variables& variables, int seconds, const std::function<std::string()>& body) {
  std::vector<Child> children{start(variables, body)};
  return collect(children, seconds, {}).front();
}

std::string as_processes(int world, const Variables& variables, int seconds, const std::function<std::string(const Ranks&)>& body,
                         const std::vector<int>& may_die, const std::function<void(int)>& before) {
  // Rank 0 makes the id and hands it to the others through a pipe.
  std::array<int, 2> ids{};
  if (pipe(ids.data()) != 0) return "no pipe";
  std::vector<Child> children;
  for (int rank = 0; rank < world; ++rank)
    children.push_back(start(variables, [&, rank]() -> std::string {
      Ranks mine{world, rank, {}};
      if (rank != 0) close(ids[1]);  // so that the end of rank 0 is the end of the pipe
      if (before) before(rank);
      if (rank == 0) {
        if (std::string wrong = must(ncclGetUniqueId(&mine.id), "ncclGetUniqueId"); !wrong.empty()) return wrong;
        for (int i = 1; i < world; ++i)
          if (write(ids[1], &mine.id, sizeof mine.id) != sizeof mine.id) return "the id could not be passed on";
      } else if (read(ids[0], &mine.id, sizeof mine.id) != sizeof mine.id) {
        return "no id arrived";
      }
      close(ids[0]);
      if (rank == 0) close(ids[1]);
      return body(mine);
    }));
  close(ids[0]);
  close(ids[1]);
  return join(collect(children, seconds, may_die));
}

std::string as_threads(int world, const Variables& variables, int seconds, const std::function<std::string(const Ranks&)>& body) {
  return in_child(variables, seconds, [&]() -> std::string {
    Ranks first{world, 0, {}};
    if (std::string wrong = must(ncclGetUniqueId(&first.id), "ncclGetUniqueId"); !wrong.empty()) return wrong;
    std::vector<std::string> complaints(static_cast<std::size_t>(world));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < world; ++rank)
      threads.emplace_back([&, rank] { complaints[static_cast<std::size_t>(rank)] = body({world, rank, first.id}); });
    for (std::thread& thread : threads) thread.join();
    return join(complaints);
  });
}

std::string run_ranks(const std::string& transport, int world, int seconds,
                      const std::function<std::string(const Ranks&)>& body) {
  const Variables variables = transport_variables(transport);
  return transport == "threads" ? as_threads(world, variables, seconds, body) : as_processes(world, variables, seconds, body);
}

std::string init(const Ranks& ranks, ncclComm_t& comm) {
  return must(ncclCommInitRank(&comm, ranks.world, ranks.id, ranks.rank), "ncclCommInitRank");
}

std::string with_comm(const Ranks& ranks, const std::function<std::string(ncclComm_t)>& body) {
  ncclComm_t comm = nullptr;
  if (std::string wrong = init(ranks, comm); !wrong.empty()) return wrong;
  if (std::string wrong = body(comm); !wrong.empty()) {
    ncclCommAbort(comm);
    return wrong;
  }
  return must(ncclCommDestroy(comm), "ncclCommDestroy");
}

std::string must(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return "";
  return std::string(what) + ": " + ncclGetErrorString(result) + ": " + ncclGetLastError(nullptr);
}

int open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<int>(std::distance(begin(all), end(all)));
}

// UCX, wherever else on this machine it is at work, gives its memory a name until it has opened it.
int shared_memory_names() {
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    found += entry.path().filename().string().starts_with("ucx_shm_posix") ? 0 : 1;
  return found;
}

}  // namespace testing
