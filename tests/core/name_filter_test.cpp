// SPDX-License-Identifier: Apache-2.0
#include "core/name_filter.h"

#include <catch2/catch.hpp>
#include <string>

using shoal::Code;
using shoal::NameFilter;

namespace {

// Those of lo, eth0, eth10, docker0, veth12 that the filter admits, in this order.
std::string admitted(const std::string& text) {
  const shoal::Result<NameFilter> filter = NameFilter::parse("NCCL_SOCKET_IFNAME", text);
  INFO(filter.status().text());
  REQUIRE(filter.is_ok());
  std::string names;
  for (const char* name : {"lo", "eth0", "eth10", "docker0", "veth12"})
    if (filter->admits(name)) names += std::string(names.empty() ? "" : " ") + name;
  return names;
}

}  // namespace

TEST_CASE("name filter: prefixes, exact names, exclusions") {
  CHECK(admitted("") == "lo eth0 eth10 docker0 veth12");
  CHECK(admitted("eth") == "eth0 eth10");
  CHECK(admitted("eth1") == "eth10");
  CHECK(admitted("lo") == "lo");
  CHECK(admitted("=lo") == "lo");
  CHECK(admitted("=eth") == "");
  CHECK(admitted("=eth0,eth10") == "eth0 eth10");
  CHECK(admitted("^docker,veth") == "lo eth0 eth10");
  CHECK(admitted("^=lo") == "eth0 eth10 docker0 veth12");
  CHECK(admitted("^=eth") == "lo eth0 eth10 docker0 veth12");
  CHECK(admitted("nosuch0") == "");
  CHECK(admitted("lo,nosuch0") == "lo");
  CHECK(admitted("e,d") == "eth0 eth10 docker0");
  CHECK(admitted("eth0:7,lo:0") == "lo eth0");
  CHECK(admitted("eth0,,lo,") == "lo eth0");
  CHECK(admitted(std::string(300, 'x')) == "");
  CHECK(admitted("^" + std::string(300, 'x')) == "lo eth0 eth10 docker0 veth12");
}

TEST_CASE("name filter: what the grammar does not know is refused, quoting it") {
  const std::string text = GENERATE("^", "=", "^=", ",", "^,", "=^lo", "^^lo", "==lo", "lo,^eth0", "lo,=eth0", "eth0, lo", " ",
                                    "eth0 ", "eth0:", ":7", "eth0:x", "eth0:-1", "eth0:65536", "eth0:1:2", "eth\t");
  const shoal::Result<NameFilter> filter = NameFilter::parse("NCCL_SOCKET_IFNAME", text);
  REQUIRE_FALSE(filter.is_ok());
  CHECK(filter.status().code() == Code::invalid_argument);
  CHECK_THAT(std::string(filter.status().text()), Catch::StartsWith("NCCL_SOCKET_IFNAME='" + text + "'"));
}
