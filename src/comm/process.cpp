// SPDX-License-Identifier: Apache-2.0
#include "comm/process.h"

#include <fmt/format.h>
#include <sched.h>
#include <sodium.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <mutex>

namespace shoal::comm {
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

// Of what memory can be shared between: memory files pass over sockets whose names are of one network namespace of one boot.
// Whatever name a host has or is given, ranks that differ in this are apart.
std::string memory_domain() {
  std::array<char, 64> space{};
  const ssize_t length = readlink("/proc/self/ns/net", space.data(), space.size() - 1);
  return boot_id() + "/" + (length > 0 ? space.data() : "");
}

std::uint64_t random64() {
  std::uint64_t value = 0;
  randombytes_buf(&value, sizeof value);
  return value;
}

std::uint64_t process_number() {
  static std::mutex mutex;
  static pid_t drawn_by = 0;
  static std::uint64_t number = 0;
  const std::lock_guard lock(mutex);
  if (drawn_by != getpid()) {
    drawn_by = getpid();
    number = random64();
  }
  return number;
}

}  // namespace

link::PeerIdentity identity_of_this_process(Rank rank, const Environment& environment) {
  link::PeerIdentity self;
  self.rank = rank;
  self.host = host_name();
  self.host_id = (environment.host_id.empty() ? self.host : environment.host_id) + "/" + memory_domain();
  self.process = process_number();
  self.pid = getpid();
  return self;
}

int processors_shared(std::span<const link::PeerIdentity> ranks, const link::PeerIdentity& self) {
  cpu_set_t all, one;
  CPU_ZERO(&all);
  const auto add = [&](pid_t pid) {
    CPU_ZERO(&one);
    if (sched_getaffinity(pid, sizeof one, &one) == 0) CPU_OR(&all, &all, &one);
  };
  add(0);
  for (const link::PeerIdentity& rank : ranks)
    if (rank.host_id == self.host_id && rank.pid != self.pid) add(rank.pid);
  return std::max(1, CPU_COUNT(&all));
}

std::string random_name() { return fmt::format("shoal-{:016x}{:016x}", random64(), random64()); }

}  // namespace shoal::comm
