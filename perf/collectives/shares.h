// SPDX-License-Identifier: Apache-2.0
// What several collectives have in common: lengths, places and factors in nccl-tests' definitions. Pure.
#pragma once

#include "perf/collective.h"

namespace shoal::perf {

// Where the size is that of all ranks' blocks together: elements of one, whole multiples of 16 bytes.
inline std::size_t block_elements(std::size_t bytes, std::size_t element_bytes, int world) {
  constexpr std::size_t kUnit = 16;
  return bytes / element_bytes / static_cast<std::size_t>(world) / (kUnit / element_bytes) * (kUnit / element_bytes);
}

// The bytes of rank `rank`'s block, all blocks being equally long.
inline std::span<const std::byte> block_of(std::span<const std::byte> memory, int rank, int world) {
  const std::size_t length = memory.size() / static_cast<std::size_t>(world);
  return memory.subspan(static_cast<std::size_t>(rank) * length, length);
}

inline std::size_t offset_of(int rank, std::size_t block) { return static_cast<std::size_t>(rank) * block; }

// Input and output begin at the same place.
inline InPlace same_place(const Extent& /*extent*/, const Place& /*place*/) { return {}; }

inline double all_of_it(int /*world*/) { return 1; }
inline double all_but_own(int world) { return static_cast<double>(world - 1) / world; }

inline int once(int /*world*/) { return 1; }

inline void write_own(Pattern& pattern, const Place& place, std::span<std::byte> send) { pattern.write_input(send, place.rank); }

// Block q is what rank q put in.
inline std::int64_t check_gathered(Pattern& pattern, const Place& place, const Blocks& /*blocks*/,
                                   std::span<const std::byte> receive) {
  std::int64_t wrong = 0;
  for (int rank = 0; rank < place.world && !receive.empty(); ++rank)
    wrong += pattern.wrong_inputs(block_of(receive, rank, place.world), rank);
  return wrong;
}

}  // namespace shoal::perf
