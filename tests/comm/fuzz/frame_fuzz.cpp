// SPDX-License-Identifier: Apache-2.0
// Any bytes as frames: nothing without the right digest comes out. The first byte says how the rest is cut.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "comm/frame.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t piece = std::size_t{data[0]} + 1;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  shoal::comm::FrameDecoder decoder(shoal::link::Key{}, shoal::comm::Side::client, 4096);
  shoal::comm::FrameEncoder encoder(shoal::link::Key{}, shoal::comm::Side::client);
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    decoder.feed(bytes.subspan(at, std::min(piece, bytes.size() - at)));
    const auto next = decoder.next();
    if (!next.is_ok()) return 0;
    // Only what the encoder would have made.
    if (next->has_value() && (*next)->size() > 4096) std::abort();
    if (next->has_value()) (void)encoder.header(**next);
  }
  return 0;
}
