// SPDX-License-Identifier: Apache-2.0
// Any bytes: the IDX parser refuses them, or its dimensions multiply to exactly the cells that it returns.
#include <cstdlib>
#include <functional>
#include <numeric>

#include "train/data/idx.h"
#include "train/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shoal::train;
  for (std::size_t dimensions = 1; dimensions <= kMaxIdxDimensions; ++dimensions) {
    try {
      const Idx idx = parse_idx({data, size}, dimensions);
      const std::size_t cells =
          std::accumulate(idx.dimensions.begin(), idx.dimensions.end(), std::size_t{1}, std::multiplies<>());
      if (cells != idx.cells.size() || idx.dimensions.size() != dimensions || size != 4 + 4 * dimensions + cells) std::abort();
    } catch (const Error&) {
    }
  }
  return 0;
}
