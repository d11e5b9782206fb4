// SPDX-License-Identifier: Apache-2.0
#include "link/interfaces.h"

#include <catch2/catch.hpp>

using namespace shoal;
using namespace shoal::link;

namespace {

InterfaceAddress v4(const char* name, const char* address, bool link_local = false) {
  return {name, address, false, std::string(name) == "lo", link_local};
}
InterfaceAddress v6(const char* name, const char* address, bool link_local = false) {
  return {name, address, true, std::string(name) == "lo", link_local};
}

const std::vector<InterfaceAddress> kMachine = {v4("lo", "127.0.0.1"),
                                                v4("docker0", "172.17.0.1"),
                                                v4("eth0", "10.0.0.1"),
                                                v4("ib0", "10.1.0.1"),
                                                v4("veth7", "169.254.3.4", true),
                                                v6("lo", "::1"),
                                                v6("eth0", "fe80::1%eth0", true),
                                                v6("eth0", "fd00::1"),
                                                v6("eth1", "fe80::2%eth1", true)};

std::string chosen(const std::string& filter, const std::string& family = "", std::vector<InterfaceAddress> seen = kMachine) {
  const auto found = choose_addresses(std::move(seen), filter, family);
  if (!found.is_ok()) return found.status().code() == Code::invalid_argument ? "invalid" : "other";
  std::string text;
  for (const InterfaceAddress& a : found->chosen) text += (text.empty() ? "" : " ") + a.address;
  return text;
}

}  // namespace

TEST_CASE("interfaces: one address each, InfiniBand first, bridges late, link-local last, loopback only alone") {
  CHECK(chosen("") == "10.1.0.1 10.0.0.1 172.17.0.1 169.254.3.4 fe80::2%eth1");
  CHECK(chosen("", "AF_INET") == "10.1.0.1 10.0.0.1 172.17.0.1 169.254.3.4");
  CHECK(chosen("", "AF_INET6") == "fd00::1 fe80::2%eth1");
  CHECK(chosen("", "", {v6("lo", "::1"), v4("virbr0", "192.168.122.1"), v4("lo", "127.0.0.1")}) == "127.0.0.1");
  CHECK(chosen("", "", {v6("lo", "::1"), v4("virbr0", "192.168.122.1")}) == "192.168.122.1");
  CHECK(chosen("", "", {v6("lo", "::1")}) == "::1");
}

TEST_CASE("interfaces: the filter's forms") {
  CHECK(chosen("lo") == "127.0.0.1");
  CHECK(chosen("=lo") == "127.0.0.1");
  CHECK(chosen("lo,nosuch0") == "127.0.0.1");
  CHECK(chosen("^docker,veth") == "10.1.0.1 10.0.0.1 fe80::2%eth1");
  CHECK(chosen("^=lo") == "10.1.0.1 10.0.0.1 172.17.0.1 169.254.3.4 fe80::2%eth1");
  CHECK(chosen("eth") == "10.0.0.1 fe80::2%eth1");
  CHECK(chosen("eth0,lo") == "10.0.0.1 127.0.0.1");
  CHECK(chosen("eth0:4000,lo") == "10.0.0.1 127.0.0.1");
  CHECK(chosen("=eth") == "invalid");
  CHECK(chosen("nosuch0") == "invalid");
  CHECK(chosen("^") == "invalid");
  CHECK(chosen("=^lo") == "invalid");
  CHECK(chosen(std::string(300, 'e')) == "invalid");
  CHECK(chosen("ib", "AF_INET6") == "invalid");
  CHECK(chosen("", "AF_UNIX") == "invalid");
}

TEST_CASE("interfaces: no match quotes the filter and lists what was seen") {
  const auto found = choose_addresses(kMachine, "nosuch0", "AF_INET");
  REQUIRE_FALSE(found.is_ok());
  CHECK_THAT(std::string(found.status().text()), Catch::Contains("'nosuch0'") && Catch::Contains("'AF_INET'") &&
                                                     Catch::Contains("eth0 (10.0.0.1): NCCL_SOCKET_IFNAME leaves it out") &&
                                                     Catch::Contains("eth1 (fe80::2%eth1): NCCL_SOCKET_FAMILY leaves it out") &&
                                                     Catch::Contains("lo (127.0.0.1)"));
  const auto none = choose_addresses({}, "", "");
  REQUIRE_FALSE(none.is_ok());
  CHECK_THAT(std::string(none.status().text()), Catch::EndsWith("seen: none"));
}

TEST_CASE("interfaces: of twenty useless ones the good one comes first, and sixteen are offered") {
  std::vector<InterfaceAddress> seen;
  for (int i = 0; i < 20; ++i) {
    const std::string name = "dummy" + std::to_string(i);
    seen.push_back({name, "fe80::" + std::to_string(i + 1) + "%" + name, true, false, true});
  }
  seen.push_back(v4("eth9", "10.0.0.9"));
  const auto found = choose_addresses(seen, "", "");
  REQUIRE(found.is_ok());
  CHECK(found->chosen.size() == kMaxInterfaces);
  CHECK(found->chosen.front().address == "10.0.0.9");
  CHECK(found->chosen.at(1).address == "fe80::1%dummy0");
}

TEST_CASE("interfaces: this machine's loopback is found") {
  const auto found = usable_addresses("=lo", "AF_INET");
  INFO(found.status().text());
  REQUIRE(found.is_ok());
  REQUIRE(found->size() == 1);
  CHECK(found->front().interface == "lo");
  CHECK(found->front().address == "127.0.0.1");
  CHECK(found->front().loopback);
  CHECK_FALSE(found->front().link_local);
  CHECK_FALSE(usable_addresses("nosuch0", "").is_ok());
}

TEST_CASE("interfaces: the subnet of NCCL_COMM_ID comes after InfiniBand and before all others") {
  std::vector<InterfaceAddress> seen = kMachine;
  seen.push_back(v4("eth5", "10.9.0.1"));
  seen.back().near = true;
  CHECK(chosen("", "AF_INET", seen) == "10.1.0.1 10.9.0.1 10.0.0.1 172.17.0.1 169.254.3.4");
}

TEST_CASE("interfaces: whoever is left out is named with the reason") {
  std::vector<InterfaceAddress> seen = {v4("eth0", "10.0.0.1"), v6("eth0", "fd00::1"), v4("lo", "127.0.0.1"),
                                        v4("eth1", "10.0.1.1")};
  seen.back().running = false;
  const auto found = choose_addresses(seen, "", "");
  REQUIRE(found.is_ok());
  CHECK(found->left_out == std::vector<std::string>{"eth1 (10.0.1.1): it is down",
                                                    "eth0 (fd00::1): the interface has a better address",
                                                    "lo (127.0.0.1): others have no use for it, and there is a better one"});
  CHECK(describe(found->chosen) == "eth0 (10.0.0.1)");
}

TEST_CASE("interfaces: a link-local address is spread over this machine's interfaces, its own first") {
  using Texts = std::vector<std::string>;
  CHECK(with_scopes("[fe80::1%b]:5", {"a", "b"}) == Texts{"[fe80::1%b]:5", "[fe80::1%a]:5"});
  CHECK(with_scopes("[fe80::1]:5", {"a", "b"}) == Texts{"[fe80::1%a]:5", "[fe80::1%b]:5"});
  CHECK(with_scopes("[fe80::1]:5", {}) == Texts{"[fe80::1]:5"});
  CHECK(with_scopes("[fd00::1]:5", {"a"}) == Texts{"[fd00::1]:5"});
  CHECK(with_scopes("169.254.1.1:5", {"a"}) == Texts{"169.254.1.1:5"});
  CHECK(without_scope("[fe80::1%eth0]:5") == "[fe80::1]:5");
  CHECK(without_scope("fe80::1%eth0") == "fe80::1");
  CHECK(scope_of("[fe80::1%eth0]:5") == "eth0");
  CHECK(scope_of("10.0.0.1:5").empty());
}

TEST_CASE("interfaces: loopback and link-local addresses are recognised") {
  for (const char* ip : {"127.0.0.1", "127.0.1.1", "::1"}) CHECK(is_loopback(ip));
  for (const char* ip : {"10.0.0.1", "::2", "fe80::1%lo", "", "lo"}) CHECK_FALSE(is_loopback(ip));
  for (const char* ip : {"169.254.0.1", "fe80::1", "fe80::1%eth0", "febf::1"}) CHECK(is_link_local(ip));
  for (const char* ip : {"169.255.0.1", "fec0::1", "::1", "x"}) CHECK_FALSE(is_link_local(ip));
}
