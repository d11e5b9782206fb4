// SPDX-License-Identifier: Apache-2.0
// Sequence-parallel training on text: every rank has all parameters and a part of the tokens of every sequence.
#pragma once

#include <memory>

#include "train/parallel/comm.h"
#include "train/parallel/sequence_layout.h"
#include "train/text_driver.h"

namespace shoal::train {

struct SequenceOptions {
  std::size_t columns = 1;  // ranks that exchange heads; the ring goes over the others. Divides the ranks
  Placing placing = Placing::zigzag;
};

std::unique_ptr<TextDriver> make_sequence_driver(const TextRecipe& recipe, const Communicator& comm,
                                                 const SequenceOptions& options);

}  // namespace shoal::train
