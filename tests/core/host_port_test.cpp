// SPDX-License-Identifier: Apache-2.0
#include "core/host_port.h"

#include <catch2/catch.hpp>

using namespace shoal;

TEST_CASE("host and port: what is parsed is written the same") {
  const auto [text, where] = GENERATE(table<std::string, HostPort>({{"1.2.3.4:56", {"1.2.3.4", 56}},
                                                                    {"[::1]:56", {"::1", 56}},
                                                                    {"[fe80::1%eth0]:65535", {"fe80::1%eth0", 65535}},
                                                                    {"node-7.cluster:1", {"node-7.cluster", 1}},
                                                                    {"h:0", {"h", 0}}}));
  const Result<HostPort> parsed = parse_host_port(text);
  REQUIRE(parsed.is_ok());
  CHECK(*parsed == where);
  CHECK(to_text(*parsed) == text);
}

TEST_CASE("host and port: everything else is refused, quoting it") {
  const std::string text =
      GENERATE("", ":", "h", "h:", ":1", "h:x", "h:1x", "h: 1", "h:-1", "h:+1", "h:65536", "h:99999999999999999999", "::1:56",
               "[::1]", "[]:1", "[::1:56", "::1]:56", "[h]:1", "a b:1", "[[::1]]:1", "h\n:1");
  const Result<HostPort> parsed = parse_host_port(text);
  REQUIRE_FALSE(parsed.is_ok());
  CHECK(parsed.status().code() == Code::invalid_argument);
  CHECK_THAT(std::string(parsed.status().text()), Catch::Contains("'" + text + "'"));
}
