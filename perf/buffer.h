// SPDX-License-Identifier: Apache-2.0
// Memory for one side of a call: touched before it is measured, huge pages asked for where they help, canaries around the bytes
// in use. One owner, one thread.
#pragma once

#include <cstddef>
#include <span>

namespace shoal::perf {

class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  // Room for `bytes`. An empty buffer if the system refuses.
  static Buffer allocate(std::size_t bytes);
  bool is_valid() const { return mapping_ != nullptr; }

  // `bytes` from `shift` bytes behind the alignment (2 MiB for large buffers, else 4096); shift + bytes is within the room.
  std::span<std::byte> region(std::size_t shift, std::size_t bytes) const { return {data_ + shift, bytes}; }

  // Marks kCanary bytes on both sides of a region, and says later whether they are untouched.
  static constexpr std::size_t kCanary = 64;
  static void mark(std::span<std::byte> region);
  static bool untouched(std::span<const std::byte> region);

 private:
  void* mapping_ = nullptr;
  std::size_t mapped_ = 0;
  std::byte* data_ = nullptr;
};

}  // namespace shoal::perf
