// SPDX-License-Identifier: Apache-2.0
// (A file of its own: inlined into its callers, the pair looks mismatched to GCC.)
#include "compress/allocations.h"

#include <cstdlib>
#include <new>

namespace {

thread_local std::size_t made = 0;

}  // namespace

void* operator new(std::size_t bytes, const std::nothrow_t& /*none*/) noexcept {
  ++made;
  return std::malloc(bytes == 0 ? 1 : bytes);
}
void* operator new(std::size_t bytes) {
  void* const memory = operator new(bytes, std::nothrow);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*bytes*/) noexcept { std::free(memory); }
// The library's own array forms call those above; a sanitizer's do not.
void* operator new[](std::size_t bytes) { return operator new(bytes); }
void* operator new[](std::size_t bytes, const std::nothrow_t& none) noexcept { return operator new(bytes, none); }
void operator delete[](void* memory) noexcept { operator delete(memory); }
void operator delete[](void* memory, std::size_t bytes) noexcept { operator delete(memory, bytes); }

namespace testing {

std::size_t allocations() { return made; }

}  // namespace testing
