// SPDX-License-Identifier: Apache-2.0
#include "comm/task_list.h"

#include <charconv>
#include <system_error>

namespace shoal::comm {
namespace {

// A positive number at the front of `text`, taken off it.
std::optional<int> take_number(std::string_view& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value < 1) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

}  // namespace

std::optional<int> tasks_of_node(std::string_view list, int node) {
  std::optional<int> found;
  for (long first = 0; !list.empty();) {
    const std::optional<int> tasks = take_number(list);
    if (!tasks) return std::nullopt;
    std::optional<int> nodes = 1;
    if (take(list, "(x")) {
      nodes = take_number(list);
      if (!nodes || !take(list, ")")) return std::nullopt;
    }
    if (!found && node >= first && node < first + *nodes) found = tasks;
    first += *nodes;
    if (!list.empty() && !(take(list, ",") && !list.empty())) return std::nullopt;
  }
  return found;
}

}  // namespace shoal::comm
