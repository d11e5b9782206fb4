// SPDX-License-Identifier: Apache-2.0
// How the elements of a call are cut: into slices, which run one after the other through a lane, each cut into the plan's chunks.
// All slices but the last are equal, and divide evenly into chunks. A pure function of agreed numbers, equal on all ranks.
#pragma once

#include <algorithm>

#include "core/types.h"
#include "plan/plan.h"

namespace shoal::engine {

struct Slicing {
  Count count;
  std::size_t slice = 0;   // elements of every slice but the last
  std::size_t slices = 0;  // 0 if count is 0

  // Element range of chunk c of slice k.
  plan::Range range(std::size_t k, std::int32_t chunks, std::int32_t c) const {
    const std::size_t begin = k * slice;
    const std::size_t length = std::min(slice, count.value - begin);
    if (chunks == 1) return {begin, begin + length};  // without division: asked for at every look for a message
    const plan::Range part = plan::chunk_range({length}, chunks, c);
    return {begin + part.begin, begin + part.end};
  }
};

// Messages (one chunk of one slice) of at most `message` bytes, as equal as possible. At least one element a message.
inline Slicing make_slicing(Count count, DataType type, std::int32_t chunks, Bytes message) {
  const std::size_t n = static_cast<std::size_t>(chunks);
  const std::size_t most = std::max<std::size_t>(1, message.value / element_bytes(type));
  const auto up = [](std::size_t a, std::size_t b) { return a / b + (a % b != 0 ? 1 : 0); };
  const std::size_t per_chunk = up(count.value, n);  // of the longest chunk
  const std::size_t pieces = std::max<std::size_t>(1, up(per_chunk, most));
  std::size_t piece = up(per_chunk, pieces);
  if (pieces > 1) {  // whole cache lines a message, so that no two ranks write to the same one
    const std::size_t line = std::max<std::size_t>(1, 64 / element_bytes(type));
    piece = std::min(most, up(piece, line) * line);
  }
  const std::size_t slice = piece * n;
  return {count, slice, count.value == 0 ? 0 : up(count.value, slice)};
}

}  // namespace shoal::engine
