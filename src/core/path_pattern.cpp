// SPDX-License-Identifier: Apache-2.0
#include "core/path_pattern.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>

namespace shoal {
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

}  // namespace

std::string expand_path(std::string_view pattern, int rank) {
  std::string path;
  bool tells_ranks_apart = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char next = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    switch (next) {
      case 'h': path += host_name(); break;
      case 'p': path += std::to_string(getpid()); break;
      case 'r': path += std::to_string(rank); break;
      case '%': path += '%'; break;
      default: path += pattern[i]; continue;
    }
    tells_ranks_apart |= next == 'p' || next == 'r';
    ++i;
  }
  return tells_ranks_apart ? path : fmt::format("{}.{}", path, rank);
}

}  // namespace shoal
