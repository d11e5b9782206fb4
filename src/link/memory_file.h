// SPDX-License-Identifier: Apache-2.0
// Memory that processes share without a name anywhere: sealed memory files and their mappings. A file is sized exactly, pages
// are reserved before use (running out of memory is an error here, never a SIGBUS later), and it is sealed so that whoever else
// holds it cannot shrink it under us. Owned resources; no thread rule.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>

#include <cerrno>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "core/status.h"
#include "core/types.h"
#include "link/socket.h"

namespace shoal::link {

// Owns a shared mapping.
class Mapping {
 public:
  Mapping() = default;
  explicit Mapping(std::span<std::byte> memory) : memory_(memory) {}
  Mapping(Mapping&& other) noexcept : memory_(std::exchange(other.memory_, {})) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(memory_, other.memory_);
    return *this;
  }
  ~Mapping() {
    if (!memory_.empty()) ::munmap(memory_.data(), memory_.size());
  }

  std::span<std::byte> memory() const { return memory_; }

 private:
  std::span<std::byte> memory_;
};

inline constexpr int kMemoryFileSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

// Sees to it that the first `n` bytes of a memory file are there.
inline Status reserve_memory(const char* what, const Descriptor& file, Bytes n) {
  int refused = 0;
  do refused = ::fallocate(file.get(), 0, 0, static_cast<off_t>(n.value)) == 0 ? 0 : errno;
  while (refused == EINTR);
  if (refused != 0)
    return fail(Code::system_error, "{}: cannot reserve {} bytes of shared memory: {}", what, n.value, errno_text(refused));
  return {};
}

// A new file of `size` bytes, all zero, all reserved, or the first `reserved` of them. `what` names its use in errors and in
// /proc/PID/maps.
inline Result<Descriptor> create_memory_file(const char* what, Bytes size, std::optional<Bytes> reserved = {}) {
  // The kernel would try in earnest, and kill processes for it, before it finds that so much cannot be had.
  struct sysinfo host {};
  if (::sysinfo(&host) == 0 && size.value / host.mem_unit > host.totalram)
    return fail(Code::system_error, "{}: cannot reserve {} bytes of shared memory: the host has {}", what, size.value,
                std::size_t{host.totalram} * host.mem_unit);
  // Beyond this limit the kernel would not only refuse, but send a signal that ends the process.
  struct rlimit longest {};
  if (::getrlimit(RLIMIT_FSIZE, &longest) == 0 && size.value > longest.rlim_cur)
    return fail(Code::system_error,
                "{}: cannot reserve {} bytes of shared memory: this process may write files of {} (ulimit -f)", what, size.value,
                longest.rlim_cur);
  Descriptor file{::memfd_create(what, MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  if (!file.is_open()) return fail(Code::system_error, "{}: no memory file: {}", what, errno_text(errno));
  const auto length = static_cast<off_t>(size.value);
  if (::ftruncate(file.get(), length) != 0)
    return fail(Code::system_error, "{}: cannot size a memory file to {} bytes: {}", what, size.value, errno_text(errno));
  if (Status there = reserve_memory(what, file, reserved.value_or(size)); !there.is_ok()) return there;
  if (::fcntl(file.get(), F_ADD_SEALS, kMemoryFileSeals) != 0)
    return fail(Code::system_error, "{}: cannot seal a memory file of {} bytes: {}", what, size.value, errno_text(errno));
  return file;
}

// Maps a file, ours or one that a peer sent: refused unless it is a memory file of exactly `size` bytes that keeps its size. With
// `touch` no page fault lies on the way of the first messages.
inline Result<Mapping> map_memory_file(const char* what, const Descriptor& file, Bytes size, bool touch = true) {
  const int seals = ::fcntl(file.get(), F_GET_SEALS);
  if (seals < 0) return fail(Code::system_error, "{}: not a memory file: {}", what, errno_text(errno));
  if ((seals & (F_SEAL_SHRINK | F_SEAL_GROW)) != (F_SEAL_SHRINK | F_SEAL_GROW))
    return fail(Code::system_error, "{}: the memory file may change its size (seals {:#x})", what, seals);
  struct stat facts {};
  if (::fstat(file.get(), &facts) != 0) return fail(Code::system_error, "{}: fstat: {}", what, errno_text(errno));
  if (facts.st_size < 0 || static_cast<std::size_t>(facts.st_size) != size.value)
    return fail(Code::system_error, "{}: the memory file has {} bytes, {} wanted", what, facts.st_size, size.value);
  const int flags = MAP_SHARED | (touch ? MAP_POPULATE : 0);
  void* start = ::mmap(nullptr, size.value, PROT_READ | PROT_WRITE, flags, file.get(), 0);
  if (start == MAP_FAILED) return fail(Code::system_error, "{}: cannot map {} bytes: {}", what, size.value, errno_text(errno));
  return Mapping{{static_cast<std::byte*>(start), size.value}};
}

}  // namespace shoal::link
