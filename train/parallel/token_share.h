// SPDX-License-Identifier: Apache-2.0
// The tokens of each sequence that are one rank's of a sequence group, cut out of whole sequences.
#pragma once

#include <span>
#include <vector>

#include "train/data/text.h"
#include "train/parallel/sequence_layout.h"

namespace shoal::train {

class TokenShare {
 public:
  // `rank` of the layout's ranks; `whole`: the places of a whole sequence's tokens.
  TokenShare(const SequenceLayout& layout, std::size_t rank, std::span<const Place> whole)
      : tokens_(layout.tokens_of(rank)), places_(layout.places_of(rank, whole)) {}

  std::span<const Place> places() const { return places_; }
  // Padding has no target.
  TextSample cut(const TextSample& whole) const;

 private:
  std::vector<std::size_t> tokens_;
  std::vector<Place> places_;
};

}  // namespace shoal::train
