// SPDX-License-Identifier: Apache-2.0
// What a step of a scheme should send by its formula, and how that is set beside what was counted. Pure functions.
#pragma once

#include <span>
#include <string>

#include "train/parallel/ledger.h"

namespace shoal::train {

// Of one kind of collective, a step, a rank; bytes as the ledger counts them.
struct Volume {
  Moves how;
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;
  std::string what;  // "2 a layer forward and backward, embedding, head"
};

// A line for each kind that is expected or was counted, with "as the formula" or "NOT as the formula (...)".
std::string beside_formulas(const Ledger& counted, std::uint64_t steps, std::span<const Volume> expected);

}  // namespace shoal::train
