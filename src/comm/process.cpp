// SPDX-License-Identifier: Apache-2.0
#include "comm/process.h"

#include <fmt/format.h>
#include <sodium.h>
#include <unistd.h>

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
  self.host_id = environment.host_id.empty() ? boot_id() + "/" + self.host : environment.host_id;
  self.process = process_number();
  self.pid = getpid();
  return self;
}

std::string random_name() { return fmt::format("shoal-{:016x}{:016x}", random64(), random64()); }

}  // namespace shoal::comm
