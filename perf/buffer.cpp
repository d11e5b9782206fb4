// SPDX-License-Identifier: Apache-2.0
#include "perf/buffer.h"

#include <nccl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

namespace shoal::perf {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr auto kMark = std::byte{0xa5};

std::byte* align_up(std::byte* at, std::size_t alignment) {
  const auto place = reinterpret_cast<std::uintptr_t>(at);
  return at + (alignment - place % alignment) % alignment;
}

}  // namespace

Buffer::Buffer(Buffer&& other) noexcept
    : block_(std::exchange(other.block_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      data_(std::exchange(other.data_, nullptr)),
      is_mapped_(other.is_mapped_) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(block_, other.block_);
  std::swap(size_, other.size_);
  std::swap(data_, other.data_);
  std::swap(is_mapped_, other.is_mapped_);
  return *this;
}

Buffer::~Buffer() {
  if (block_ == nullptr) return;
  if (is_mapped_)
    ::munmap(block_, size_);
  else
    ncclMemFree(block_);
}

Buffer Buffer::allocate(std::size_t bytes, Memory memory) {
  const std::size_t alignment = bytes >= kHugePage ? kHugePage : kPage;
  const std::size_t size = bytes + alignment + 2 * kPage;  // a page for the canaries on each side
  Buffer buffer;
  buffer.is_mapped_ = memory == Memory::own;
  void* block = nullptr;
  if (buffer.is_mapped_) {
    block = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (block == MAP_FAILED) return buffer;
  } else if (ncclMemAlloc(&block, size) != ncclSuccess) {
    return buffer;
  }
  buffer.block_ = block;
  buffer.size_ = size;
  buffer.data_ = align_up(static_cast<std::byte*>(block) + kPage, alignment);
  if (buffer.is_mapped_ && alignment == kHugePage)
    ::madvise(buffer.data_, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);  // a wish: no matter if refused
  std::memset(buffer.data_ - kCanary, 0, bytes + 2 * kCanary);
  return buffer;
}

void Buffer::mark(std::span<std::byte> region) {
  std::fill_n(region.data() - kCanary, kCanary, kMark);
  std::fill_n(region.data() + region.size(), kCanary, kMark);
}

bool Buffer::untouched(std::span<const std::byte> region) {
  const auto marked = [](std::byte byte) { return byte == kMark; };
  return std::all_of(region.data() - kCanary, region.data(), marked) &&
         std::all_of(region.data() + region.size(), region.data() + region.size() + kCanary, marked);
}

}  // namespace shoal::perf
