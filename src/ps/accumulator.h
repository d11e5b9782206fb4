// SPDX-License-Identifier: Apache-2.0
// One iteration's sum over the workers, in the order of their ranks whatever the order of arrival: the pushes of the lowest
// worker that is not done are added as they come, those of higher ones are kept until it is their turn. Float addition does not
// associate, so this is what makes the bits the same in every run; its price is the memory of what is kept. One thread.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/types.h"
#include "ps/blocks.h"

namespace shoal::ps {

class Accumulator {
 public:
  Accumulator(const BlockLayout& layout, DataType type, int workers);

  // Several pushes of a worker to a key are added in the order of these calls.
  void add(int worker, KeyRange piece, std::span<const std::byte> values);
  // Nothing more comes from it.
  void worker_done(int worker);

  // The sum in this block; null if nobody has pushed to it. Keys without a push hold -0, to which anything adds unchanged.
  Block* sum(std::size_t block) { return sums_[block].empty() ? nullptr : &sums_[block]; }
  Block take_or_zeros(std::size_t block);

 private:
  struct Piece {
    KeyRange keys;
    std::vector<std::byte> values;
  };
  struct Contribution {
    bool done = false;
    std::vector<Piece> kept;
  };

  void add_now(KeyRange piece, std::span<const std::byte> values);
  Block& touched(std::size_t block);
  Block nothing(std::size_t block) const;

  BlockLayout layout_;
  DataType type_;
  std::vector<Block> sums_;  // empty: not touched
  std::vector<Contribution> contributions_;
  std::size_t turn_ = 0;  // the lowest worker that is not done
};

}  // namespace shoal::ps
