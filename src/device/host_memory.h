// SPDX-License-Identifier: Apache-2.0
// Host memory for communication: whole pages of a memory file, which other processes can map, reserved at once; where none can be
// had, of this process alone, huge ones where there is room for them. Every block is remembered, so that only what was given is
// taken back. Any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "core/status.h"
#include "core/types.h"

namespace shoal::device {

// At a multiple of 4096 bytes, all zero; a size of 0 is a null pointer. system_error if the system has not that much.
Result<void*> allocate_host(Bytes size);

// Null is fine. invalid_argument for anything else that allocate_host did not give, or that was freed.
Status free_host(void* start);

// Where memory lies that another process may map.
struct Shareable {
  std::uint64_t number = 0;  // of the block: 1, 2, ..., never given again in this process
  std::uint64_t inode = 0;   // of its memory file
  int file = -1;             // the file, open here
  std::size_t size = 0;      // of the whole block, which is the whole file
  std::size_t offset = 0;    // of the memory in it
};
// Nothing if not all of [start, start + size) is of one block, or that is of this process alone.
std::optional<Shareable> shareable(const void* start, Bytes size);

// How often free_host has given a block back: whoever has mapped one should look whether it is still there.
std::uint64_t frees();

}  // namespace shoal::device
