// SPDX-License-Identifier: Apache-2.0
// Tensor-parallel training on text: all ranks compute every batch together, each with its part of every matrix.
#pragma once

#include <memory>

#include "train/parallel/comm.h"
#include "train/text_driver.h"

namespace shoal::train {

// Throws Error (Exit::usage): the model or the batch does not divide over the ranks.
std::unique_ptr<TextDriver> make_tensor_driver(const TextRecipe& recipe, const Communicator& comm, bool sequence_parallel);

}  // namespace shoal::train
