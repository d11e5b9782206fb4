// SPDX-License-Identifier: Apache-2.0
#include "comm/unique_id.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "comm/bootstrap.h"
#include "comm/ranks.h"
#include "core/expects.h"
#include "link/interfaces.h"
#include "link/socket.h"

namespace shoal::comm {
namespace {

UniqueId example(const std::string& address) {
  UniqueId id;
  id.addresses = {address};
  id.communicator = 0x0123'4567'89ab'cdef;
  for (std::size_t i = 0; i < id.key.bytes.size(); ++i) id.key.bytes[i] = static_cast<std::byte>(i + 1);
  return id;
}

TEST_CASE("unique id: what is encoded is decoded, whatever the address family") {
  const std::string address = GENERATE("127.0.0.1:1", "10.200.3.4:65535", "[::1]:8080", "[2001:db8::1234]:443", "[fe80::1]:9");
  const UniqueId id = example(address);
  const Result<UniqueId> back = UniqueId::decode(id.encode());
  REQUIRE(back.is_ok());
  CHECK(back->address() == address);
  CHECK(back->communicator == id.communicator);
  CHECK(back->key == id.key);
}

TEST_CASE("unique id: every single changed bit is refused") {
  const std::array<char, UniqueId::kBytes> good = example(GENERATE("127.0.0.1:4000", "[fe80::1]:9")).encode();
  for (std::size_t byte = 0; byte < good.size(); ++byte)
    for (unsigned bit = 0; bit < 8; ++bit) {
      std::array<char, UniqueId::kBytes> bad = good;
      bad[byte] = static_cast<char>(static_cast<unsigned char>(bad[byte]) ^ (1U << bit));
      const Result<UniqueId> decoded = UniqueId::decode(bad);
      REQUIRE_FALSE(decoded.is_ok());
      REQUIRE(decoded.status().code() == Code::invalid_argument);
      REQUIRE(decoded.status().text().find("not a unique id of this library") != std::string_view::npos);
    }
}

TEST_CASE("unique id: zeros, ones and text are refused") {
  std::array<char, UniqueId::kBytes> bytes;
  for (const int value : {0, 255, 83}) {
    bytes.fill(static_cast<char>(value));
    CHECK_FALSE(UniqueId::decode(bytes).is_ok());
  }
}

TEST_CASE("unique id: an address that is no ip and port is a programmer's error") {
  for (const char* address : {"", "localhost:1", "1.2.3.4", "1.2.3.4:0", "[::1]", "1.2.3.4%eth0:5"}) {
    CAPTURE(address);
    CHECK_THROWS_AS(example(address).encode(), BrokenExpectation);
  }
}

TEST_CASE("unique id: several addresses keep their order; the scope of a link-local one is left at home") {
  UniqueId id = example("10.0.0.1:4000");
  id.addresses = {"10.0.0.1:4000", "[2001:db8::1]:4000", "[fe80::1%eth0]:4000", "192.168.1.2:4000"};
  const Result<UniqueId> back = UniqueId::decode(id.encode());
  REQUIRE(back.is_ok());
  CHECK(back->addresses == std::vector<std::string>{"10.0.0.1:4000", "[2001:db8::1]:4000", "[fe80::1]:4000", "192.168.1.2:4000"});
  CHECK(back->address() == "10.0.0.1:4000, [2001:db8::1]:4000, [fe80::1]:4000, 192.168.1.2:4000");
  id.addresses.push_back("10.0.0.3:4001");
  CHECK_THROWS_AS(id.encode(), BrokenExpectation);  // another port
}

TEST_CASE("unique id: as many addresses as there is room for, which is twelve of IPv4") {
  std::vector<std::string> many;
  for (int i = 0; i < 16; ++i) many.push_back(fmt::format("10.0.0.{}:9", i));
  UniqueId id = example("10.0.0.1:9");
  id.addresses = UniqueId::fit(many);
  CHECK(id.addresses == std::vector<std::string>(many.begin(), many.begin() + 12));
  REQUIRE(UniqueId::decode(id.encode()).is_ok());
  CHECK(UniqueId::decode(id.encode())->addresses == id.addresses);
  many.insert(many.begin(), {"[::1]:9", "[::2]:9", "[::3]:9", "[::4]:9"});
  CHECK(UniqueId::fit(many) == std::vector<std::string>{"[::1]:9", "[::2]:9", "[::3]:9", "10.0.0.0:9"});
  id.addresses = many;
  CHECK_THROWS_AS(id.encode(), BrokenExpectation);
}

TEST_CASE("make_unique_id: every id has a key, a number and a port of its own, and is listened for") {
  const Environment environment = testing::loopback_environment();
  std::set<std::string> addresses;
  std::set<std::uint64_t> numbers;
  std::vector<UniqueId> ids;
  for (int i = 0; i < 3; ++i) {
    Result<UniqueId> id = make_unique_id(environment);
    REQUIRE(id.is_ok());
    CHECK(id->address().starts_with("127.0.0.1:"));
    CHECK(UniqueId::decode(id->encode()).is_ok());
    addresses.insert(id->address());
    numbers.insert(id->communicator);
    ids.push_back(id.take());
  }
  CHECK(addresses.size() == 3);
  CHECK(numbers.size() == 3);
  CHECK_FALSE(ids[0].key == ids[1].key);
  for (const UniqueId& id : ids) CHECK(testing::join(id, 0, 1).is_ok());
}

TEST_CASE("make_unique_id: the address is an interface's own, and a filter that matches none is an error that quotes it") {
  Environment environment;
  Result<UniqueId> id = make_unique_id(environment);
  REQUIRE(id.is_ok());
  const Result<std::vector<link::InterfaceAddress>> usable = link::usable_addresses("", "");
  REQUIRE(usable.is_ok());
  const Result<link::HostPort> where = link::parse_host_port(id->addresses.front());
  REQUIRE(where.is_ok());
  CHECK(where->host == link::without_scope(usable->front().address));
  CHECK(id->addresses.size() <= usable->size());
  CHECK(testing::join(*id, 0, 1).is_ok());

  environment.socket_ifname = "=nosuchinterface";
  const Result<UniqueId> none = make_unique_id(environment);
  REQUIRE_FALSE(none.is_ok());
  CHECK(none.status().code() == Code::invalid_argument);
  CHECK(none.status().text().find("=nosuchinterface") != std::string_view::npos);
}

TEST_CASE("NCCL_COMM_ID: every rank gets the same id, which depends on the secret") {
  Environment environment;
  environment.comm_id = "127.0.0.1:41007";
  const Result<UniqueId> one = make_unique_id(environment);
  const Result<UniqueId> two = make_unique_id(environment);
  REQUIRE(one.is_ok());
  REQUIRE(two.is_ok());
  CHECK(one->encode() == two->encode());
  CHECK(one->address() == "127.0.0.1:41007");
  environment.secret = "the secret of this job";
  const Result<UniqueId> other = make_unique_id(environment);
  REQUIRE(other.is_ok());
  CHECK_FALSE(other->key == one->key);
  for (const char* wrong : {"127.0.0.1", "127.0.0.1:0", ":1", "127.0.0.1:port"}) {
    CAPTURE(wrong);
    environment.comm_id = wrong;
    const Result<UniqueId> none = make_unique_id(environment);
    REQUIRE_FALSE(none.is_ok());
    CHECK(none.status().code() == Code::invalid_argument);
    CHECK(none.status().text().find(wrong) != std::string_view::npos);
  }
}

}  // namespace
}  // namespace shoal::comm
