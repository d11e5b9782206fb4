// SPDX-License-Identifier: Apache-2.0
// Any 128 bytes: what is accepted as a unique id must be what encode makes.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>

#include "comm/unique_id.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using shoal::comm::UniqueId;
  std::array<char, UniqueId::kBytes> bytes{};
  std::copy_n(data, std::min(size, bytes.size()), bytes.begin());
  const shoal::Result<UniqueId> id = UniqueId::decode(bytes);
  if (id.is_ok() && id->encode() != bytes) std::abort();
  return 0;
}
