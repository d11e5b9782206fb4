// SPDX-License-Identifier: Apache-2.0
// Log lines in NCCL's form, to where NCCL_DEBUG_FILE says: "host:pid:tid [rank] SHOAL INFO text". Thread-safe. Silent unless
// NCCL_DEBUG asks: VERSION one banner line, WARN what went wrong, INFO what was decided, TRACE everything.
#pragma once

#include <fmt/format.h>

#include <string_view>

namespace shoal::log {

enum class Level : int { none = 0, version = 1, warn = 2, info = 3, trace = 4 };

bool enabled(Level level);
// `rank` -1: not about one rank.
void write(Level level, int rank, std::string_view text);

template <typename... Args>
void warn(int rank, fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::warn)) write(Level::warn, rank, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void info(int rank, fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::info)) write(Level::info, rank, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void trace(int rank, fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::trace)) write(Level::trace, rank, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace shoal::log
