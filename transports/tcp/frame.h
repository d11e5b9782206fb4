// SPDX-License-Identifier: Apache-2.0
// What a message looks like on a TCP stream: this header, then the payload. Little endian. There are no other frames: TCP brings
// order and flow control.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace shoal::transports {

struct FrameHeader {
  static constexpr std::uint32_t kMagic = 0x314c4853;  // "SHL1"

  std::uint32_t magic = kMagic;
  std::uint32_t tag = 0;
  std::uint64_t length = 0;  // bytes of payload
};
inline constexpr std::size_t kFrameHeader = sizeof(FrameHeader);
static_assert(kFrameHeader == 16);
static_assert(std::endian::native == std::endian::little, "a big-endian host swaps the header's fields here");

}  // namespace shoal::transports
