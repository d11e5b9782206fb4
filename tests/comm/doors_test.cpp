// SPDX-License-Identifier: Apache-2.0
#include "comm/doors.h"

#include <catch2/catch.hpp>

#include "comm/ranks.h"

namespace shoal::comm::testing {
namespace {

link::PeerIdentity peer(int rank, const std::string& host_id, const std::string& address) {
  link::PeerIdentity made = identity(rank);
  made.host_id = host_id;
  made.address = address;
  return made;
}

}  // namespace

TEST_CASE("doors: a filter decides, with one port for all its addresses") {
  const Result<link::NetworkDoors> doors = open_candidates(loopback_environment(), 0);
  REQUIRE(doors.is_ok());
  REQUIRE(doors->listeners.size() == 1);
  CHECK(doors->address().starts_with("127.0.0.1:"));
  Environment none;
  none.socket_ifname = "=nosuchinterface";
  CHECK(open_candidates(none, 0).status().code() == Code::invalid_argument);
  CHECK(open_own_door({"127.0.0.1", "127.0.0.1"}, none, 0).status().code() == Code::invalid_argument);
}

TEST_CASE("doors: where the connection left the machine its own address is used, unless the filter forbids it") {
  const Environment any;
  const Result<std::vector<link::InterfaceAddress>> usable = link::usable_addresses("", "");
  REQUIRE(usable.is_ok());
  const std::string own = usable->front().address;
  // As if another machine had been reached from there.
  Result<link::NetworkDoors> doors = open_own_door({own, "192.0.2.99"}, any, 0);
  REQUIRE(doors.is_ok());
  CHECK(link::parse_host_port(doors->address())->host == own);
  // 127.0.1.1 is reached from 127.0.0.1, and nothing has left the machine: all that others may use.
  doors = open_own_door({"127.0.0.1", "127.0.1.1"}, any, 0);
  REQUIRE(doors.is_ok());
  CHECK(doors->listeners.size() == usable->size());
  CHECK(link::parse_host_port(doors->listeners.front().address)->host == own);
  doors = open_own_door({own, "192.0.2.99"}, loopback_environment(), 0);
  REQUIRE(doors.is_ok());
  CHECK(doors->address().starts_with("127.0.0.1:"));
}

TEST_CASE("doors: of several addresses of a peer the proven one comes first") {
  std::vector<link::PeerIdentity> peers = {peer(0, "a", "10.0.0.1:5,10.1.0.1:5,10.2.0.1:6"), peer(1, "b", "10.9.0.1:7"),
                                           peer(2, "c", "10.8.0.1:1,10.7.0.1:1")};
  prefer_proven(peers, "10.1.0.1");
  CHECK(peers[0].address == "10.1.0.1:5,10.0.0.1:5,10.2.0.1:6");
  CHECK(peers[1].address == "10.9.0.1:7");
  CHECK(peers[2].address == "10.8.0.1:1,10.7.0.1:1");
}

TEST_CASE("doors: a rank that others can only reach at loopback is named, with the remedy") {
  CHECK(check_reachable({peer(0, "a", "127.0.0.1:5"), peer(1, "a", "10.0.0.1:5")}).is_ok());   // one host
  CHECK(check_reachable({peer(0, "a", "127.0.0.1:5"), peer(1, "b", "127.0.0.1:6")}).is_ok());  // hosts that are pretended
  CHECK(check_reachable({peer(0, "a", "10.0.0.1:5"), peer(1, "b", "127.0.0.1:6,10.0.0.2:6")}).is_ok());
  const Status wrong = check_reachable({peer(0, "a", "10.0.0.1:5"), peer(1, "b", "127.0.1.1:6,[::1]:6")});
  CHECK(wrong.code() == Code::invalid_usage);
  CHECK(wrong.culprit() == std::optional(Rank{1}));
  CHECK_THAT(std::string(wrong.text()), Catch::StartsWith("rank 1 (node1") && Catch::Contains("127.0.1.1:6,[::1]:6") &&
                                            Catch::Contains("NCCL_SOCKET_IFNAME on node1"));
}

}  // namespace shoal::comm::testing
