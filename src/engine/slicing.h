// SPDX-License-Identifier: Apache-2.0
// How the elements of a call are cut: the vector, or every block, into slices, which run one after the other through a lane, each
// cut into the plan's chunks. All slices of a block but its last are equal, and divide evenly into chunks. A pure function of
// agreed numbers, equal on all ranks.
#pragma once

#include <algorithm>

#include "core/types.h"
#include "plan/plan.h"

namespace shoal::engine {

struct Slicing {
  Count count;             // of the vector, or of the longest block
  std::size_t slice = 0;   // elements of every slice but the last
  std::size_t slices = 0;  // 0 if count is 0

  // Element range of chunk c of slice k, within a vector or block of `length` elements; empty past its end.
  plan::Range range(std::size_t k, std::int32_t chunks, std::int32_t c, std::size_t length) const {
    const std::size_t begin = std::min(k * slice, length);
    const std::size_t here = std::min(slice, length - begin);
    if (chunks == 1) return {begin, begin + here};  // without division: asked for at every look for a message
    const plan::Range part = plan::chunk_range({here}, chunks, c);
    return {begin + part.begin, begin + part.end};
  }
  plan::Range range(std::size_t k, std::int32_t chunks, std::int32_t c) const { return range(k, chunks, c, count.value); }

  // Elements of the longest chunk of a slice.
  std::size_t longest(std::int32_t chunks) const {
    const std::size_t n = static_cast<std::size_t>(chunks), whole = std::min(slice, count.value);
    return whole / n + (whole % n != 0 ? 1 : 0);
  }
};

// Parts (one chunk of one slice) of at most `part` bytes, as equal as possible. At least one element a part.
inline Slicing make_slicing(Count count, DataType type, std::int32_t chunks, Bytes part) {
  const std::size_t n = static_cast<std::size_t>(chunks);
  const std::size_t most = std::max<std::size_t>(1, part.value / element_bytes(type));
  const auto up = [](std::size_t a, std::size_t b) { return a / b + (a % b != 0 ? 1 : 0); };
  const std::size_t per_chunk = up(count.value, n);  // of the longest chunk
  const std::size_t pieces = std::max<std::size_t>(1, up(per_chunk, most));
  std::size_t piece = up(per_chunk, pieces);
  if (pieces > 1) {  // whole cache lines a part, so that no two ranks write to the same one
    const std::size_t line = std::max<std::size_t>(1, 64 / element_bytes(type));
    piece = std::min(most, up(piece, line) * line);
  }
  const std::size_t slice = piece * n;
  return {count, slice, count.value == 0 ? 0 : up(count.value, slice)};
}

// Parts of exactly `part` bytes where they can be: what the two ends of a block agree on without knowing of each other's other
// blocks.
inline Slicing make_fixed_slicing(Count count, DataType type, std::int32_t chunks, Bytes part) {
  const std::size_t slice = std::max<std::size_t>(1, part.value / element_bytes(type)) * static_cast<std::size_t>(chunks);
  return {count, slice, count.value / slice + (count.value % slice != 0 ? 1 : 0)};
}

}  // namespace shoal::engine
