// SPDX-License-Identifier: Apache-2.0
// Which tokens of a sequence a rank has, when `blocks` ranks (or groups of ranks) each take a block of it and the `columns` ranks
// of a group cut their block further. A length that does not divide is padded, never shortened. Under a causal mask the first
// block sees little and the last much, so that ranks that work in lock step would wait for the last; the other two placings give
// all the same: striped (Brandon et al. 2023) deals tokens out in turn, zig-zag cuts 2 x blocks chunks and gives block r the
// chunks r and 2 x blocks - 1 - r. Pure values; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "train/nn/attention.h"

namespace shoal::train {

enum class Placing : std::uint8_t { contiguous, striped, zigzag };

class SequenceLayout {
 public:
  // At least one token, block and column.
  SequenceLayout(Placing placing, std::size_t length, std::size_t blocks, std::size_t columns = 1);

  std::size_t length() const { return length_; }  // of the sequence
  std::size_t blocks() const { return blocks_; }
  std::size_t columns() const { return columns_; }
  std::size_t ranks() const { return blocks_ * columns_; }
  std::size_t tokens() const { return block_ / columns_; }  // of any rank, padding included
  std::size_t block_tokens() const { return block_; }

  // Rank r is column r % columns of block r / columns.
  std::size_t block_of(std::size_t rank) const { return rank / columns_; }
  std::size_t column_of(std::size_t rank) const { return rank % columns_; }
  // The number in the sequence of each of its tokens; kNoToken: padding.
  static constexpr std::size_t kNoToken = SIZE_MAX;
  std::vector<std::size_t> tokens_of(std::size_t rank) const;

  // Of a rank's or a block's tokens, from those of the whole sequence; kPadding for padding.
  std::vector<Place> places_of(std::size_t rank, std::span<const Place> whole) const;
  std::vector<Place> block_places(std::size_t block, std::span<const Place> whole) const;

 private:
  std::size_t number(std::size_t block, std::size_t at) const;

  Placing placing_;
  std::size_t length_, blocks_, columns_;
  std::size_t block_;  // [tokens] of a block, padding included
};

// How many (query, key) pairs are visible: the work of a block.
std::uint64_t visible_pairs(std::span<const Place> queries, std::span<const Place> keys, bool causal);

// The work of a ring of blocks in lock step: the sum over hops of the largest rank's visible pairs. At best, with all ranks
// equal, it is all pairs / blocks.
std::uint64_t lock_step_pairs(const SequenceLayout& layout, std::span<const Place> whole, bool causal);

}  // namespace shoal::train
