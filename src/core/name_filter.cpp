// SPDX-License-Identifier: Apache-2.0
#include "core/name_filter.h"

#include <algorithm>
#include <charconv>

#include "core/split.h"

namespace shoal {
namespace {

constexpr std::string_view kGrammar = "allowed is [^][=]name[:port],name[:port]...";

// What is not a name of anything: these would be silently useless, and are mostly a mistaken grammar ("=^lo", "eth0, eth1").
bool is_name(std::string_view name) {
  return !name.empty() &&
         std::none_of(name.begin(), name.end(), [](char c) { return c == '^' || c == '=' || c == ':' || c <= ' ' || c == 0x7f; });
}

bool is_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Result<NameFilter> NameFilter::parse(std::string_view variable, std::string_view text) {
  NameFilter filter;
  if (text.empty()) return filter;
  std::string_view rest = text;
  if (rest.starts_with('^')) filter.excludes_ = true, rest.remove_prefix(1);
  if (rest.starts_with('=')) filter.exact_ = true, rest.remove_prefix(1);
  for (const std::string_view entry : split(rest, ',')) {
    if (entry.empty()) continue;  // "a,,b" and "a," are common and harmless
    const std::size_t colon = entry.find(':');
    const std::string_view name = entry.substr(0, colon);
    if (!is_name(name) || (colon != std::string_view::npos && !is_port(entry.substr(colon + 1))))
      return fail(Code::invalid_argument, "{}='{}': '{}' is not a name; {}", variable, text, entry, kGrammar);
    filter.names_.emplace_back(name);
  }
  if (filter.names_.empty()) return fail(Code::invalid_argument, "{}='{}': names nothing; {}", variable, text, kGrammar);
  return filter;
}

bool NameFilter::admits(std::string_view name) const {
  if (names_.empty()) return true;
  const bool listed =
      std::any_of(names_.begin(), names_.end(), [&](const std::string& n) { return exact_ ? name == n : name.starts_with(n); });
  return listed != excludes_;
}

}  // namespace shoal
