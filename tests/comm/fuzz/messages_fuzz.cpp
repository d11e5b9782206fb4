// SPDX-License-Identifier: Apache-2.0
// Any bytes as a message (records, tables, notices, claims, placements, ...): what is accepted encodes to the same bytes.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "comm/messages.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const shoal::Result<shoal::comm::Message> message = shoal::comm::decode(bytes);
  if (message.is_ok() && !std::ranges::equal(shoal::comm::encode(*message), bytes)) std::abort();
  return 0;
}
