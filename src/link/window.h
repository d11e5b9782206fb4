// SPDX-License-Identifier: Apache-2.0
// Memory of one rank that the other ranks of its host read: its board (engine/boards.h). Made at first use, and as much of it as
// is used; peers map it when a link over the window's channel is made, and touch what they need. Driven by one thread; the memory
// outlives its rank where a peer of the same process still reads it.
#pragma once

#include "core/status.h"
#include "link/memory_file.h"

namespace shoal::link {

class Window {
 public:
  // `head`: bytes at its beginning that are there from the first.
  Window(Bytes size, Bytes head) : size_(size), head_(head) {}

  // Makes the memory, once. Beyond its head nothing may be written before fill().
  Status open() {
    if (!mapping_.memory().empty()) return {};
    Result<Descriptor> file = create_memory_file(kName, size_, head_);
    if (!file.is_ok()) return file.status();
    Result<Mapping> mapped = map_memory_file(kName, *file, size_, /*touch=*/false);
    if (!mapped.is_ok()) return mapped.status();
    file_ = file.take();
    mapping_ = mapped.take();
    return {};
  }
  // Sees to it, once, that all of the open window is there, before a first message waits for page faults.
  Status fill() {
    if (filled_) return {};
    if (Status there = reserve_memory(kName, file_, size_); !there.is_ok()) return there;
    (void)::madvise(mapping_.memory().data(), size_.value, MADV_POPULATE_WRITE);  // Linux 5.14; else at first use
    filled_ = true;
    return {};
  }
  // A peer's, from its descriptor.
  static Result<Mapping> map(const Descriptor& file, Bytes size) { return map_memory_file(kName, file, size, /*touch=*/false); }

  Bytes size() const { return size_; }
  std::span<std::byte> memory() const { return mapping_.memory(); }  // empty before open()
  int descriptor() const { return file_.get(); }

 private:
  static constexpr const char* kName = "shoal-window";
  Bytes size_, head_;
  bool filled_ = false;
  Descriptor file_;
  Mapping mapping_;
};

}  // namespace shoal::link
