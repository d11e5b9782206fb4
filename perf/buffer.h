// SPDX-License-Identifier: Apache-2.0
// Memory for one side of a call: touched before it is measured, canaries around the bytes in use. One owner, one thread.
#pragma once

#include <cstddef>
#include <span>

namespace shoal::perf {

// Where buffers come from, and what the communicator knows of them.
enum class Memory {
  own,         // the process's own (mmap), huge pages asked for where they help
  mapped,      // ncclMemAlloc
  registered,  // ncclMemAlloc and ncclCommRegister
  window,      // ncclMemAlloc and ncclCommWindowRegister
};

class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  // Room for `bytes`. An empty buffer if there is not so much memory. Telling communicators of it is left to others.
  static Buffer allocate(std::size_t bytes, Memory memory = Memory::own);
  bool is_valid() const { return block_ != nullptr; }
  // All of it, canaries' room included: what is registered.
  std::span<std::byte> whole() const { return {static_cast<std::byte*>(block_), size_}; }

  // `bytes` from `shift` bytes behind the alignment (2 MiB for large buffers, else 4096); shift + bytes is within the room.
  std::span<std::byte> region(std::size_t shift, std::size_t bytes) const { return {data_ + shift, bytes}; }

  // Marks kCanary bytes on both sides of a region, and says later whether they are untouched.
  static constexpr std::size_t kCanary = 64;
  static void mark(std::span<std::byte> region);
  static bool untouched(std::span<const std::byte> region);

 private:
  void* block_ = nullptr;
  std::size_t size_ = 0;
  std::byte* data_ = nullptr;
  bool is_mapped_ = false;  // by mmap; else it is ncclMemAlloc's
};

}  // namespace shoal::perf
