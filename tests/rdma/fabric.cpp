// SPDX-License-Identifier: Apache-2.0
#include "rdma/fabric.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace testing {
namespace {

std::string place_of(int number) { return fmt::format("/run/netns/h{}", number); }

void must_be(bool held, const std::string& what) {
  if (!held) throw std::runtime_error(what);
}

}  // namespace

int rdma_hosts() {
  int hosts = 0;
  while (std::filesystem::exists(place_of(hosts + 1))) ++hosts;
  return hosts;
}

// As `ip netns exec` does: /sys shows the devices of the namespace that it was mounted in.
void enter_rdma_host(int number) {
  const int place = ::open(place_of(number).c_str(), O_RDONLY | O_CLOEXEC);
  must_be(place >= 0 && ::setns(place, CLONE_NEWNET) == 0, place_of(number) + " cannot be entered");
  ::close(place);
  must_be(::unshare(CLONE_NEWNS) == 0 && ::mount("", "/", "none", MS_SLAVE | MS_REC, nullptr) == 0, "no mounts of one's own");
  (void)::umount2("/sys", MNT_DETACH);
  must_be(::mount("sysfs", "/sys", "sysfs", 0, nullptr) == 0, "/sys cannot be mounted");
}

void on_rdma_host(int number, const std::string& command) {
  FILE* const pipe = ::popen(fmt::format("ip netns exec h{} {} 2>&1", number, command).c_str(), "r");
  must_be(pipe != nullptr, command + " cannot be run");
  std::string said;
  for (char piece[256]; std::fgets(piece, sizeof piece, pipe) != nullptr;) said += piece;
  must_be(::pclose(pipe) == 0, command + ": " + said);
}

LinkLog::LinkLog() {
  char name[] = "/tmp/shoal-rdma-XXXXXX";
  must_be(::mkdtemp(name) != nullptr, "no folder for logs");
  folder_ = name;
}

LinkLog::~LinkLog() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

Variables LinkLog::variables() const {
  return {{"NCCL_DEBUG", "INFO"}, {"NCCL_DEBUG_SUBSYS", "NET"}, {"NCCL_DEBUG_FILE", folder_ + "/%p"}};
}

std::string LinkLog::text() const {
  std::ostringstream all;
  for (const auto& each : std::filesystem::directory_iterator(folder_)) all << std::ifstream(each.path()).rdbuf();
  return all.str();
}

int LinkLog::links(const std::string& transport) const {
  std::istringstream lines(text());
  int found = 0;
  for (std::string line; std::getline(lines, line);)
    if (line.find(" link to rank ") != std::string::npos && line.ends_with(" by " + transport)) ++found;
  return found;
}

}  // namespace testing
