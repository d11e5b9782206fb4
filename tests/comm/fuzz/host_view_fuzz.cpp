// SPDX-License-Identifier: Apache-2.0
// Any text as what a rank tells of its host: what is accepted is within bounds and comes back the same.
#include <cstdint>
#include <cstdlib>

#include "comm/host_view.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<std::string> texts = {std::string(reinterpret_cast<const char*>(data), size)};
  const auto views = shoal::comm::decode_host_views(texts);
  if (!views.is_ok()) return 0;
  const std::vector<std::string> again = {encode(views->front())};
  const auto back = shoal::comm::decode_host_views(again);
  if (!back.is_ok() || *back != *views) std::abort();
  return 0;
}
