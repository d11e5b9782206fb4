// SPDX-License-Identifier: Apache-2.0
#include "device/host_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
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

struct Blocks {
  std::mutex mutex;
  std::map<void*, std::size_t> size_of;  // under mutex
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

}  // namespace

Result<void*> allocate_host(Bytes size) {
  if (size.value == 0) return static_cast<void*>(nullptr);
  if (size.value > std::numeric_limits<std::ptrdiff_t>::max() - kHugePage)
    return fail(Code::system_error, "{} bytes: more than memory can hold", size.value);
  const std::size_t whole = (size.value + page() - 1) / page() * page();
  const bool huge = whole >= kHugePage;
  void* const start = map_aligned(whole, huge ? kHugePage : page());
  if (start == MAP_FAILED) return fail(Code::system_error, "{} bytes: mmap: {}", size.value, errno_text(errno));
  if (huge) (void)madvise(start, whole, MADV_HUGEPAGE);  // refused where huge pages are switched off: small ones serve too
  Blocks& all = blocks();
  const std::lock_guard lock(all.mutex);
  all.size_of.emplace(start, whole);
  return start;
}

Status free_host(void* start) {
  if (start == nullptr) return {};
  Blocks& all = blocks();
  const std::lock_guard lock(all.mutex);
  const auto found = all.size_of.find(start);
  if (found == all.size_of.end())
    return fail(Code::invalid_argument, "ptr is {}: not from ncclMemAlloc, or freed already", start);
  if (munmap(start, found->second) != 0)
    return fail(Code::system_error, "munmap {} bytes at {}: {}", found->second, start, errno_text(errno));
  all.size_of.erase(found);
  return {};
}

}  // namespace shoal::device
