// SPDX-License-Identifier: Apache-2.0
#include "device/host_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>

namespace shoal::device {
namespace {

constexpr std::size_t kHugePage = 2u << 20;  // of x86-64, and of Arm with pages of 4 KiB

std::size_t page() {
  static const std::size_t size = std::max<std::size_t>(4096, static_cast<std::size_t>(sysconf(_SC_PAGESIZE)));
  return size;
}

struct Block {
  std::size_t size = 0;
  int file = -1;  // -1: of this process alone
  std::uint64_t inode = 0;
  std::uint64_t number = 0;
};
struct Blocks {
  std::mutex mutex;
  std::map<const std::byte*, Block> by_start;  // under mutex
  std::uint64_t made = 0;                      // under mutex
  std::atomic<std::uint64_t> frees{0};
};

Blocks& blocks() {
  // Lives as long as the process: memory may be freed in destructors of the user's static objects.
  static Blocks* const all = std::make_unique<Blocks>().release();
  return *all;
}

// What a huge page can stand for begins at a multiple of its size: more is mapped, and what is too much given back.
void* map_aligned(std::size_t size, std::size_t alignment) {
  const std::size_t more = alignment > page() ? alignment : 0;
  void* const mapped = mmap(nullptr, size + more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED || more == 0) return mapped;
  auto* const first = static_cast<std::byte*>(mapped);
  const std::size_t before = (alignment - reinterpret_cast<std::uintptr_t>(first) % alignment) % alignment;
  if (before > 0) munmap(first, before);
  if (more > before) munmap(first + before + size, more - before);
  return first + before;
}

// A memory file of so many bytes, reserved and sealed; -1: there is none to be had.
int make_file(std::size_t size) {
  struct rlimit longest {};  // beyond it a signal would come
  if (getrlimit(RLIMIT_FSIZE, &longest) == 0 && size > longest.rlim_cur) return -1;
  const int file = memfd_create("shoal-memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0) return -1;
  const auto length = static_cast<off_t>(size);
  bool reserved = ftruncate(file, length) == 0;
  while (reserved && fallocate(file, 0, 0, length) != 0) reserved = errno == EINTR;
  if (reserved && fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) return file;
  close(file);
  return -1;
}

// Over memory that was mapped before, which keeps its alignment. False: as it was.
bool put_file(Block& block, void* start) {
  // Reserving is earnest, and may cost other processes their lives: not of more than half of what there is.
  const std::size_t half =
      static_cast<std::size_t>(sysconf(_SC_AVPHYS_PAGES)) / 2 * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  if (block.size > half) return false;
  block.file = make_file(block.size);
  if (block.file < 0) return false;
  struct stat facts {};
  if (fstat(block.file, &facts) == 0 &&
      mmap(start, block.size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, block.file, 0) == start) {
    block.inode = facts.st_ino;
    return true;
  }
  close(block.file);
  block.file = -1;
  return false;
}

}  // namespace

Result<void*> allocate_host(Bytes size) {
  if (size.value == 0) return static_cast<void*>(nullptr);
  if (size.value > std::numeric_limits<std::ptrdiff_t>::max() - kHugePage)
    return fail(Code::system_error, "{} bytes: more than memory can hold", size.value);
  Block block{.size = (size.value + page() - 1) / page() * page()};
  const bool huge = block.size >= kHugePage;
  void* const start = map_aligned(block.size, huge ? kHugePage : page());
  if (start == MAP_FAILED) return fail(Code::system_error, "{} bytes: mmap: {}", size.value, errno_text(errno));
  if (!put_file(block, start) && huge)
    (void)madvise(start, block.size, MADV_HUGEPAGE);  // refused where huge pages are switched off: small ones serve too
  Blocks& all = blocks();
  const std::lock_guard lock(all.mutex);
  block.number = ++all.made;
  all.by_start.emplace(static_cast<const std::byte*>(start), block);
  return start;
}

Status free_host(void* start) {
  if (start == nullptr) return {};
  Blocks& all = blocks();
  const std::lock_guard lock(all.mutex);
  const auto found = all.by_start.find(static_cast<const std::byte*>(start));
  if (found == all.by_start.end())
    return fail(Code::invalid_argument, "ptr is {}: not from ncclMemAlloc, or freed already", start);
  if (munmap(start, found->second.size) != 0)
    return fail(Code::system_error, "munmap {} bytes at {}: {}", found->second.size, start, errno_text(errno));
  if (found->second.file >= 0) close(found->second.file);
  all.by_start.erase(found);
  all.frees.fetch_add(1);
  return {};
}

std::optional<Shareable> shareable(const void* start, Bytes size) {
  const auto* const first = static_cast<const std::byte*>(start);
  Blocks& all = blocks();
  const std::lock_guard lock(all.mutex);
  auto found = all.by_start.upper_bound(first);
  if (found == all.by_start.begin()) return std::nullopt;
  --found;
  const Block& block = found->second;
  const auto offset = static_cast<std::size_t>(first - found->first);
  if (block.file < 0 || offset > block.size || size.value > block.size - offset) return std::nullopt;
  return Shareable{.number = block.number, .inode = block.inode, .file = block.file, .size = block.size, .offset = offset};
}

std::uint64_t frees() { return blocks().frees.load(); }

}  // namespace shoal::device
