// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/token_share.h"

namespace shoal::train {

TextSample TokenShare::cut(const TextSample& whole) const {
  TextSample mine{.sequences = whole.sequences, .length = tokens_.size()};
  for (std::size_t s = 0; s < whole.sequences; ++s)
    for (const std::size_t token : tokens_) {
      const bool padding = token == SequenceLayout::kNoToken;
      mine.inputs.push_back(padding ? Token{} : whole.inputs[s * whole.length + token]);
      mine.targets.push_back(padding ? kNoTarget : whole.targets[s * whole.length + token]);
    }
  return mine;
}

}  // namespace shoal::train
