// SPDX-License-Identifier: Apache-2.0
#include "train/data/idx.h"

#include "train/error.h"

namespace shoal::train {
namespace {

constexpr std::uint8_t kUnsignedByte = 0x08;

std::size_t big_endian_u32(std::span<const std::uint8_t> bytes) {
  return (std::size_t{bytes[0]} << 24) | (std::size_t{bytes[1]} << 16) | (std::size_t{bytes[2]} << 8) | std::size_t{bytes[3]};
}

void check_magic(std::span<const std::uint8_t> magic, std::size_t dimensions) {
  if (magic[0] != 0 || magic[1] != 0) {
    throw failure(Exit::usage, "not an IDX file: it starts with {:#04x} {:#04x}, expected two zero bytes", magic[0], magic[1]);
  }
  if (magic[2] != kUnsignedByte)
    throw failure(Exit::usage, "IDX type {:#04x} at byte 2, expected 0x08 (unsigned bytes)", magic[2]);
  if (magic[3] != dimensions) throw failure(Exit::usage, "{} IDX dimensions at byte 3, expected {}", magic[3], dimensions);
}

}  // namespace

Idx parse_idx(std::span<const std::uint8_t> bytes, std::size_t dimensions) {
  if (dimensions < 1 || dimensions > kMaxIdxDimensions) throw failure(Exit::usage, "{} IDX dimensions asked for", dimensions);
  const std::size_t header = 4 + 4 * dimensions;
  if (bytes.size() < header) throw failure(Exit::usage, "{} bytes, but the IDX header alone takes {}", bytes.size(), header);
  check_magic(bytes.first(4), dimensions);

  Idx idx{.dimensions = {}, .cells = bytes.subspan(header)};
  std::size_t left =
      idx.cells.size();  // what the dimensions to come may still multiply to; a product could overflow, this cannot
  for (std::size_t d = 0; d < dimensions; ++d) {
    const std::size_t extent = big_endian_u32(bytes.subspan(4 + 4 * d, 4));
    if (extent == 0) throw failure(Exit::usage, "IDX dimension {} is empty", d);
    if (left % extent != 0) {
      throw failure(Exit::usage, "{} bytes of cells do not fill IDX dimension {} of {}", idx.cells.size(), d, extent);
    }
    left /= extent;
    idx.dimensions.push_back(extent);
  }
  if (left != 1) {
    throw failure(Exit::usage, "{} bytes of cells, but the IDX dimensions take {}", idx.cells.size(),
                  left == 0 ? 0 : idx.cells.size() / left);
  }
  return idx;
}

}  // namespace shoal::train
