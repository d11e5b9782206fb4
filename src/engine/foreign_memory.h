// SPDX-License-Identifier: Apache-2.0
// Memory of other ranks of this host, mapped here: blocks of device::allocate_host that their owners have offered. Mapped once
// each, kept until their owner has freed memory or the communicator ends. Belongs to the thread that drives its rank.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/types.h"
#include "link/memory_file.h"

namespace shoal::engine {

// A part of a block, as its owner describes it to the others.
struct OfferedPart {
  std::uint64_t number = 0;  // of the block, among its process's; 0: none is needed
  std::uint64_t inode = 0;   // of its memory file, which the owner has open as `file`
  std::uint64_t size = 0;    // of the whole block, bytes
  std::uint64_t offset = 0;  // of the part in it
  std::int32_t file = -1;
};

class ForeignMemory {
 public:
  explicit ForeignMemory(World world) : owners_(static_cast<std::size_t>(world.value)) {}

  // Forgets what was mapped of a rank that has freed memory since; `frees`: how often it has.
  void look_at(Rank owner, std::uint64_t frees);

  // Where `bytes` of the part are here; null if it cannot be mapped, or is not what its owner says. What it says is not trusted.
  std::byte* map(Rank owner, pid_t pid, const OfferedPart& part, std::size_t bytes);

 private:
  struct Block {
    std::uint64_t number = 0;
    link::Mapping mapping;
  };
  struct Owner {
    std::uint64_t frees = 0;
    std::vector<Block> blocks;
  };
  std::vector<Owner> owners_;  // [world]
};

}  // namespace shoal::engine
