// SPDX-License-Identifier: Apache-2.0
// The tokens that one rank computes at a time: (sequences, tokens), or of each sequence the part that is this rank's. A view.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "train/nn/attention.h"
#include "train/nn/token_loss.h"

namespace shoal::train {

struct TokenBatch {
  std::size_t sequences = 0;
  std::span<const Place> places;          // of the tokens of a sequence that are here, the same for every sequence
  std::span<const Token> inputs;          // (sequences, tokens)
  std::span<const std::int32_t> targets;  // (sequences, tokens), each a token or kNoTarget
  float weight = 0;                       // of one target's loss in the mean: 1 / the targets of the step's whole batch

  std::size_t tokens() const { return places.size(); }
  std::size_t rows() const { return sequences * tokens(); }
};

}  // namespace shoal::train
