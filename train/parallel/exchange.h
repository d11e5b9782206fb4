// SPDX-License-Identifier: Apache-2.0
// What attention over a split sequence asks of the ranks that share it, so that its logic runs without the library too. All ranks
// call the same in the same order. One thread.
#pragma once

#include <cstddef>
#include <span>

#include "train/parallel/share.h"

namespace shoal::train {

template <typename T>
class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual Seat seat() const = 0;

  // Part i of `from` goes to rank i, part i of `to` comes from it; parts lie one behind the other. Sizes [values] are by rank;
  // what i sends to j is as much as j expects from i.
  virtual void all_to_all(std::span<const T> from, std::span<const std::size_t> from_sizes, std::span<T> to,
                          std::span<const std::size_t> to_sizes) = 0;

  // Begins to give `mine` to the next rank, and to take as much from the one before into `theirs`; both are to be left alone
  // until wait, which ends all that has begun.
  virtual void pass(std::span<const T> mine, std::span<T> theirs) = 0;
  virtual void wait() = 0;
};

}  // namespace shoal::train
