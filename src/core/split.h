// SPDX-License-Identifier: Apache-2.0
// Text cut at a separator: "a,,b" gives "a", "", "b"; the empty text gives one empty part. The parts point into the text.
#pragma once

#include <string_view>
#include <vector>

namespace shoal {

inline std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

}  // namespace shoal
