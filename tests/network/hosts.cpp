// SPDX-License-Identifier: Apache-2.0
#include "network/hosts.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <stdexcept>

namespace testing {
namespace {

void require(bool held, const std::string& what) {
  if (!held) throw std::runtime_error(what + ": " + strerror(errno));
}

void write_file(const char* path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.flush();
  require(file.good(), path);
}

// The calling process becomes root of a user namespace of its own.
void become_root_of_nothing() {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  require(unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWUTS) == 0, "unshare");
  write_file("/proc/self/setgroups", "deny");
  write_file("/proc/self/uid_map", "0 " + std::to_string(user) + " 1");
  write_file("/proc/self/gid_map", "0 " + std::to_string(group) + " 1");
  require(mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "mount");
}

std::string reason() {
  return in_child({}, 20, []() -> std::string {
    become_root_of_nothing();
    shell("ip link set lo up && ip link add veth0 type veth peer name veth1 && mount -t tmpfs none /dev/shm");
    return "";
  });
}

}  // namespace

const std::string& why_no_hosts() {
  static const std::string once = reason();
  return once;
}

std::string with_hosts(int seconds, const std::function<std::string()>& body, const Variables& variables) {
  return in_child(variables, seconds, [&]() -> std::string {
    become_root_of_nothing();
    shell("ip link set lo up");
    return body();
  });
}

void shell(const std::string& command) {
  FILE* const pipe = popen(("exec 2>&1; " + command).c_str(), "r");
  require(pipe != nullptr, "popen");
  std::string said;
  std::array<char, 512> piece{};
  while (const std::size_t n = fread(piece.data(), 1, piece.size(), pipe)) said.append(piece.data(), n);
  const int status = pclose(pipe);
  if (status != 0) throw std::runtime_error(command + ": " + said);
}

Host::Host(const std::string& name) {
  std::array<int, 2> ready{};
  require(pipe2(end_, O_CLOEXEC) == 0 && pipe(ready.data()) == 0, "pipe");
  pid_ = fork();
  if (pid_ == 0) {
    close(end_[1]);
    close(ready[0]);
    const bool made = unshare(CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWUTS) == 0 && sethostname(name.data(), name.size()) == 0 &&
                      mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
    const char answer = made ? 'y' : 'n';
    (void)!write(ready[1], &answer, 1);
    char none = 0;
    (void)!read(end_[0], &none, 1);  // until the pipe closes
    _exit(0);
  }
  close(end_[0]);
  close(ready[1]);
  char answer = 'n';
  const bool heard = read(ready[0], &answer, 1) == 1;
  close(ready[0]);
  require(heard && answer == 'y', "a host of its own");
  run("ip link set lo up");
}

Host::~Host() {
  close(end_[1]);
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
}

void Host::enter() const {
  for (const char* space : {"net", "uts", "mnt"}) {
    const int file = open(("/proc/" + std::to_string(pid_) + "/ns/" + space).c_str(), O_RDONLY | O_CLOEXEC);
    require(file >= 0 && setns(file, 0) == 0, space);
    close(file);
  }
}

void Host::run(const std::string& command) const {
  const std::string failure = in_child({}, 20, [&]() -> std::string {
    enter();
    shell(command);
    return "";
  });
  if (!failure.empty()) throw std::runtime_error(failure);
}

void Host::cable(const std::string& name, const Host& other, const std::string& other_name) const {
  shell("ip link add cable0 type veth peer name cable1 && ip link set cable0 netns " + std::to_string(pid_) + " name " + name +
        " && ip link set cable1 netns " + std::to_string(other.pid_) + " name " + other_name);
  run("ip link set " + name + " up");
  other.run("ip link set " + other_name + " up");
}

void Host::write_etc(const std::string& file, const std::string& text) const {
  run("f=$(mktemp); printf '%s' '" + text + "' > $f; mount --bind $f /etc/" + file + "; rm -f $f");
}

}  // namespace testing
