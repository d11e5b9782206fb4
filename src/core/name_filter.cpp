// SPDX-License-Identifier: Apache-2.0
#include "core/name_filter.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "core/split.h"

namespace shoal {
namespace {

std::string_view grammar(NameFilter::Of what) {
  return what == NameFilter::Of::devices ? "allowed is [^][=]name[:port],name[:port]..., ports from 1 to 255"
                                         : "allowed is [^][=]name[:port],name[:port]...";
}

// What is not a name of anything: these would be silently useless, and are mostly a mistaken grammar ("=^lo", "eth0, eth1").
bool is_name(std::string_view name) {
  return !name.empty() &&
         std::none_of(name.begin(), name.end(), [](char c) { return c == '^' || c == '=' || c == ':' || c <= ' ' || c == 0x7f; });
}

std::optional<int> port_in(std::string_view text, NameFilter::Of what) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (what == NameFilter::Of::interfaces) return 0;
  return port >= 1 && port <= 255 ? std::optional<int>(port) : std::nullopt;
}

}  // namespace

Result<NameFilter> NameFilter::parse(std::string_view variable, std::string_view text, Of what) {
  NameFilter filter;
  if (text.empty()) return filter;
  std::string_view rest = text;
  if (rest.starts_with('^')) filter.excludes_ = true, rest.remove_prefix(1);
  if (rest.starts_with('=')) filter.exact_ = true, rest.remove_prefix(1);
  for (const std::string_view entry : split(rest, ',')) {
    if (entry.empty()) continue;  // "a,,b" and "a," are common and harmless
    const std::size_t colon = entry.find(':');
    const std::string_view name = entry.substr(0, colon);
    const std::optional<int> port = colon == std::string_view::npos ? 0 : port_in(entry.substr(colon + 1), what);
    if (!is_name(name) || !port)
      return fail(Code::invalid_argument, "{}='{}': '{}' is not a {}; {}", variable, text, entry,
                  what == Of::devices ? "device" : "name", grammar(what));
    filter.entries_.push_back({std::string(name), *port});
  }
  if (filter.entries_.empty()) return fail(Code::invalid_argument, "{}='{}': names nothing; {}", variable, text, grammar(what));
  return filter;
}

bool NameFilter::admits(std::string_view name, int port) const {
  if (entries_.empty()) return true;
  const bool listed = std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    const bool named = exact_ ? name == entry.name : name.starts_with(entry.name);
    return named && (entry.port == 0 || entry.port == port);
  });
  return listed != excludes_;
}

}  // namespace shoal
