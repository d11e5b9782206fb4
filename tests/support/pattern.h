// SPDX-License-Identifier: Apache-2.0
// Inputs whose reductions are exact in every type, and what must come out. Small integers with a short period in the index.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/types.h"

namespace testing {

// Rank `rank`'s input, `count` elements.
std::vector<std::byte> input_of(shoal::DataType type, shoal::ReduceOp op, int rank, std::size_t count);

// This rank's factor of a pre-multiplied sum, one element.
std::vector<std::byte> factor_of(shoal::DataType type, int rank);

// "" if `output` (count elements) is the reduction over `world` ranks' inputs: exactly, or for averages of floats within 2 units
// in the last place; else the first wrong element and how many there are. `output` starts with element `first` of the vector.
std::string compare(shoal::DataType type, shoal::ReduceOp op, int world, const std::byte* output, std::size_t count,
                    std::size_t first = 0);

// Bytes that tell where they come from: of rank `rank`, from byte `first` of its data on.
std::vector<std::byte> bytes_of(int rank, std::size_t count, std::size_t first = 0);

}  // namespace testing
