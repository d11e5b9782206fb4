// SPDX-License-Identifier: Apache-2.0
// Where something listens, as text: "1.2.3.4:56", "[fe80::1%eth0]:56", "host:56". Value type.
#pragma once

#include <cstdint>
#include <string>

#include "core/status.h"

namespace shoal {

struct HostPort {
  std::string host;  // IPv6 without its brackets
  std::uint16_t port = 0;
  friend bool operator==(const HostPort&, const HostPort&) = default;
};

// invalid_argument quotes the text.
Result<HostPort> parse_host_port(const std::string& text);
std::string to_text(const HostPort& where);

}  // namespace shoal
