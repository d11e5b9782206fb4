// SPDX-License-Identifier: Apache-2.0
// The sizes of a GPT-style transformer over bytes of text: pre-norm blocks of causal attention and a GELU layer, fixed sinusoidal
// positions (Vaswani et al. 2017), so that a sequence may have any length. Value type.
#pragma once

#include <cstddef>

namespace shoal::train {

struct GptShape {
  std::size_t vocabulary = 256;
  std::size_t width = 128;
  std::size_t heads = 4;
  std::size_t layers = 4;
  std::size_t hidden = 512;  // of a block's GELU layer
  bool tied = false;         // the head multiplies by the embedding's table

  std::size_t head_size() const { return width / heads; }
  // The units of the model, in order: the embedding, the blocks, the head.
  std::size_t units() const { return layers + 2; }
};

// Throws Error (Exit::usage) naming the numbers that do not fit.
void check_shape(const GptShape& shape);

std::size_t parameters_of(const GptShape& shape);

}  // namespace shoal::train
