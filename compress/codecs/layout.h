// SPDX-License-Identifier: Apache-2.0
// How an encoded vector lies on the wire: block after block, each its scale and then its codes, the first one in the lowest bits
// of the first byte. The last block may be short: its codes end with the byte in which the last one ends. So the encoding of a
// short block is the beginning of that of a whole one with zeros at its end.
#pragma once

#include <cstddef>

namespace shoal::compress {

struct Layout {
  std::size_t block = 1;        // elements
  std::size_t scale_bytes = 0;  // before the codes
  std::size_t bits = 8;         // a code

  // Of a block of n elements.
  constexpr std::size_t block_bytes(std::size_t n) const { return scale_bytes + (n * bits + 7) / 8; }
  constexpr std::size_t wire_bytes(std::size_t n) const {
    return n / block * block_bytes(block) + (n % block == 0 ? 0 : block_bytes(n % block));
  }
};

}  // namespace shoal::compress
