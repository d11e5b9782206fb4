// SPDX-License-Identifier: Apache-2.0
#include "core/host_port.h"

#include <algorithm>
#include <charconv>

namespace shoal {
namespace {

bool is_host(std::string_view host, bool bracketed) {
  const bool has_colon = host.find(':') != std::string_view::npos;
  return !host.empty() && has_colon == bracketed && std::none_of(host.begin(), host.end(), [](char c) {
    return c == '[' || c == ']' || static_cast<unsigned char>(c) <= ' ' || c == 0x7f;
  });
}

}  // namespace

Result<HostPort> parse_host_port(const std::string& text) {
  const Status malformed =
      fail(Code::invalid_argument, "'{}' is no address and port; allowed are 1.2.3.4:56, [ip6]:56 and host:56", text);
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return malformed;
  HostPort where;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, where.port);
  if (error != std::errc() || stop != end) return malformed;
  std::string_view host = std::string_view(text).substr(0, colon);
  const bool bracketed = host.starts_with('[') && host.ends_with(']') && host.size() > 2;
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (!is_host(host, bracketed)) return malformed;
  where.host = host;
  return where;
}

std::string to_text(const HostPort& where) {
  return where.host.find(':') == std::string::npos ? fmt::format("{}:{}", where.host, where.port)
                                                   : fmt::format("[{}]:{}", where.host, where.port);
}

}  // namespace shoal
