// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>

#include "core/ib_options.h"
#include "core/split.h"

namespace shoal {
namespace {

constexpr std::string_view kGrammar = "allowed is [^][=]name[:port],name[:port]..., ports from 1 to 255";

bool is_name(std::string_view name) {
  return !name.empty() &&
         std::none_of(name.begin(), name.end(), [](char c) { return c == '^' || c == '=' || c == ':' || c <= ' ' || c == 0x7f; });
}

// 0: no port.
int port_in(std::string_view text) {
  std::uint8_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() ? port : 0;
}

}  // namespace

Result<DeviceFilter> DeviceFilter::parse(std::string_view variable, std::string_view text) {
  DeviceFilter filter;
  if (text.empty()) return filter;
  std::string_view rest = text;
  if (rest.starts_with('^')) filter.excludes_ = true, rest.remove_prefix(1);
  if (rest.starts_with('=')) filter.exact_ = true, rest.remove_prefix(1);
  for (const std::string_view entry : split(rest, ',')) {
    if (entry.empty()) continue;  // "a,,b" and "a," are common and harmless
    const std::size_t colon = entry.find(':');
    const std::string_view name = entry.substr(0, colon);
    const int port = colon == std::string_view::npos ? 0 : port_in(entry.substr(colon + 1));
    if (!is_name(name) || (colon != std::string_view::npos && port == 0))
      return fail(Code::invalid_argument, "{}='{}': '{}' is not a device; {}", variable, text, entry, kGrammar);
    filter.entries_.push_back({std::string(name), port});
  }
  if (filter.entries_.empty()) return fail(Code::invalid_argument, "{}='{}': names nothing; {}", variable, text, kGrammar);
  return filter;
}

bool DeviceFilter::admits(std::string_view device, int port) const {
  if (entries_.empty()) return true;
  const bool listed = std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    const bool named = exact_ ? device == entry.name : device.starts_with(entry.name);
    return named && (entry.port == 0 || entry.port == port);
  });
  return listed != excludes_;
}

}  // namespace shoal
