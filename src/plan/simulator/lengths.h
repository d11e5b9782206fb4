// SPDX-License-Identifier: Apache-2.0
// How long messages are: the elements of a call cut into slices, each cut into the plan's chunks, as the engine cuts them; and
// the length of a set of chunks without listing it. Pure functions.
#pragma once

#include <algorithm>
#include <cstdint>

#include "plan/plan.h"

namespace shoal::plan {

// The slices of a vector or of each block; all but the last have `slice` elements.
struct Slices {
  std::uint64_t count = 0;
  std::uint64_t slice = 0;
  std::uint64_t slices = 0;

  std::uint64_t length(std::uint64_t k) const { return std::min(slice, count - k * slice); }
};

// Messages of at most `message_bytes`, the widest of `widest` chunks, as equal as possible and in whole cache lines; at least one
// element a chunk. 0 bytes: one slice, however long.
inline Slices cut(std::uint64_t count, std::uint64_t element_bytes, std::int32_t chunks, std::int32_t widest,
                  std::uint64_t message_bytes) {
  if (count == 0) return {};
  if (message_bytes == 0) return {count, count, 1};
  const auto up = [](std::uint64_t a, std::uint64_t b) { return a / b + (a % b != 0 ? 1 : 0); };
  const std::uint64_t n = static_cast<std::uint64_t>(chunks);
  const std::uint64_t most =
      std::max<std::uint64_t>(1, message_bytes / element_bytes / static_cast<std::uint64_t>(std::max(1, widest)));
  const std::uint64_t per_chunk = up(count, n);  // of the longest chunk
  const std::uint64_t pieces = up(per_chunk, most);
  std::uint64_t piece = up(per_chunk, pieces);
  if (pieces > 1) {
    const std::uint64_t line = std::max<std::uint64_t>(1, 64 / element_bytes);
    piece = std::min(most, up(piece, line) * line);
  }
  return {count, piece * n, up(count, piece * n)};
}

// The same in messages of exactly that much, but for the last.
inline Slices cut_exactly(std::uint64_t count, std::uint64_t element_bytes, std::int32_t chunks, std::int32_t widest,
                          std::uint64_t message_bytes) {
  if (count == 0 || message_bytes == 0) return cut(count, element_bytes, chunks, widest, message_bytes);
  const std::uint64_t slice =
      std::max<std::uint64_t>(1, message_bytes / element_bytes / static_cast<std::uint64_t>(std::max(1, widest))) *
      static_cast<std::uint64_t>(chunks);
  return {count, slice, count / slice + (count % slice != 0 ? 1 : 0)};
}

// Lengths of chunks when `elements` (of the vector, or of each block) are cut into `chunks`: the first `extra_` of the vector or
// of a block have one element more than the others.
class Lengths {
 public:
  Lengths(std::uint64_t elements, std::int32_t chunks)
      : chunks_(chunks),
        share_(elements / static_cast<std::uint64_t>(chunks)),
        extra_(static_cast<std::int64_t>(elements % static_cast<std::uint64_t>(chunks))) {}

  bool all_equal() const { return extra_ == 0; }

  // Elements of all chunks of a set in iteration i. O(1) for neighbours, O(runs) for others.
  std::uint64_t of(const Chunk& set, std::int32_t i) const {
    const std::uint64_t even = share_ * static_cast<std::uint64_t>(set.size);
    if (extra_ == 0) return even;
    const std::int64_t first = set.index.at(i);
    if (set.size == 1) return even + (first % chunks_ < extra_ ? 1 : 0);
    std::uint64_t longer = 0;
    for (std::int64_t t = 0; t < set.size; t += set.run)
      longer += longer_in(first + t / set.run * set.pitch, std::min<std::int64_t>(set.run, set.size - t), set.wrap);
    return even + longer;
  }

 private:
  // Longer chunks among the first x, among `length` from `begin` on.
  std::uint64_t longer_below(std::int64_t x) const {
    return static_cast<std::uint64_t>(x / chunks_ * extra_ + std::min(x % chunks_, extra_));
  }
  std::uint64_t longer_in(std::int64_t begin, std::int64_t length, std::int64_t wrap) const {
    if (wrap == 0) return longer_below(begin + length) - longer_below(begin);
    begin = begin % wrap < 0 ? begin % wrap + wrap : begin % wrap;
    std::uint64_t sum = 0;
    while (length > 0) {
      const std::int64_t straight = std::min(length, wrap - begin);
      sum += longer_below(begin + straight) - longer_below(begin);
      length -= straight;
      begin = 0;
    }
    return sum;
  }

  std::int64_t chunks_;
  std::uint64_t share_;
  std::int64_t extra_;
};

// The operand that says how long a step's message is.
constexpr const Chunk& operand(const Step& step) { return step.source.buffer != Buffer::none ? step.source : step.target; }

}  // namespace shoal::plan
