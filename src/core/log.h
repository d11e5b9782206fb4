// SPDX-License-Identifier: Apache-2.0
// Log lines in NCCL's form, to where NCCL_DEBUG_FILE says: "host:pid:tid [rank] NCCL INFO text". Thread-safe. Silent unless
// NCCL_DEBUG asks: VERSION one banner line, WARN what went wrong, INFO what was decided, TRACE everything; INFO and TRACE only of
// the parts that NCCL_DEBUG_SUBSYS names.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <type_traits>

#include "core/log_format.h"

namespace shoal::log {

enum class Level : int { none = 0, version = 1, warn = 2, info = 3, trace = 4 };

// Where a line of the source is. (std::source_location would say the same; Clang 14 does not have it.)
struct Place {
  const char* file = "";
  unsigned line = 0;
  const char* function = "";
  static constexpr Place here(const char* file = __builtin_FILE(), unsigned line = __builtin_LINE(),
                              const char* function = __builtin_FUNCTION()) {
    return {file, line, function};
  }
};

bool enabled(Level level);
bool enabled(Level level, Subsystem part);
// `rank` -1: not about one rank. `where` is shown in warnings.
void write(Level level, int rank, std::string_view text, Place where = Place::here());

// Once a process: the version, where NCCL_DEBUG asks: of rank 0, or of every rank from INFO on.
void banner(int rank, std::string_view version);

// A format and the place of its call.
template <typename... Args>
struct Located {
  template <typename Text>
  consteval Located(const Text& text, Place at = Place::here()) : format(text), where(at) {}
  fmt::format_string<Args...> format;
  Place where;
};

template <typename... Args>
void warn(int rank, Located<std::type_identity_t<Args>...> text, Args&&... args) {
  if (enabled(Level::warn)) write(Level::warn, rank, fmt::format(text.format, std::forward<Args>(args)...), text.where);
}
template <typename... Args>
void info(Subsystem part, int rank, fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::info, part)) write(Level::info, rank, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void info(int rank, fmt::format_string<Args...> format, Args&&... args) {
  info(Subsystem::init, rank, format, std::forward<Args>(args)...);
}
template <typename... Args>
void trace(Subsystem part, int rank, fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::trace, part)) write(Level::trace, rank, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void trace(int rank, fmt::format_string<Args...> format, Args&&... args) {
  trace(Subsystem::init, rank, format, std::forward<Args>(args)...);
}

}  // namespace shoal::log
