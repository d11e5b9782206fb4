// SPDX-License-Identifier: Apache-2.0
// Any text as a dump of a flight recorder: what is accepted is written and read again the same.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "comm/dump.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto dump = shoal::comm::dump_from_json(std::string(reinterpret_cast<const char*>(data), size));
  if (!dump.is_ok()) return 0;
  const std::string text = to_json(*dump);
  const auto again = shoal::comm::dump_from_json(text);
  if (!again.is_ok() || to_json(*again) != text) std::abort();
  return 0;
}
