// SPDX-License-Identifier: Apache-2.0
#include "comm/messages.h"

#include <catch2/catch.hpp>
#include <string>

#include "comm/ranks.h"

namespace shoal::comm {
namespace {

std::vector<Message> examples() {
  Table table;
  for (int rank = 0; rank < 3; ++rank) {
    table.peers.push_back(testing::identity(rank));
    table.views.push_back(rank == 1 ? "" : "view of " + std::to_string(rank));
  }
  table.settings = std::string("set\0tings", 9);
  table.root_rank = 1;
  Report report{.inquiry = 7, .finished = 9, .inside = true, .since_ms = 1500, .doing = "all_reduce #10", .waits_for = 3};
  report.calls = {{9, "all_reduce #9 of 5 int8, sum"}, {10, "all_reduce #10 of 5 int8, sum"}};
  report.transfers = {{1, true, 2, 80, true}, {0, false, 1, 0, false}};
  report.lengths_of = 3;
  report.sends = {1, 2, 3};
  report.receives = {4, 5, 6};
  return {Record{"0.1.0", World{7}, testing::identity(6), "", true},
          Record{"0.1.0", World{-7}, testing::identity(-1), std::string(1000, 's'), false},
          table,
          Notice{Code::remote_error, 2, "rank 2 (node2, pid 7) died"},
          Notice{Code::timeout, -1, ""},
          GaveUp{123'456'789'012},
          Abort{},
          Bye{},
          Bye{3, 88},
          Alarmed{Alarm::timeout, 2, 10, {Code::timeout, 1, "nothing from rank 1 for 5 s"}},
          Inquiry{7, 10},
          Report{},
          report,
          Claim{Rank{5}, 0x1234'5678'9abc'def0, 7, -3, "127.0.0.1:4567"},
          Claim{Rank{0}, 0, -1, 0, ""},
          Placement{Rank{1}, World{3}, "[fe80::1%eth0]:4567", link::random_key()},
          Placement{},
          Record{"0.1.0", World{7}, testing::identity(6), "", true, 3, 0x0123'4567'89ab'cdef, "no memory", std::string(144, 'u'),
                 std::string(kMaxView, 'v')},
          Records{"10.0.0.1:5, 10.1.0.1:5",
                  {Record{"0.1.0", World{7}, testing::identity(6), "", true, 3, 9, ""},
                   Record{"0.1.0", World{7}, testing::identity(5), "", false, 3, 9, ""}}},
          Records{"", {}}};
}

TEST_CASE("messages: what is encoded is decoded to the same bytes") {
  for (const Message& message : examples()) {
    const std::vector<std::byte> bytes = encode(message);
    const Result<Message> back = decode(bytes);
    CAPTURE(message.index());
    REQUIRE(back.is_ok());
    CHECK(back->index() == message.index());
    CHECK(encode(*back) == bytes);
  }
}

TEST_CASE("messages: fields arrive as they were") {
  const Result<Message> back = decode(encode(examples()[1]));
  REQUIRE(back.is_ok());
  const Record& record = std::get<Record>(*back);
  CHECK(record.version == "0.1.0");
  CHECK(record.world.value == -7);
  CHECK(record.self.rank.value == -1);
  CHECK(record.self.host == "node-1");
  CHECK(record.self.process == 999);
  CHECK(record.self.local_address == "local--1");
  CHECK(record.settings == std::string(1000, 's'));
  CHECK_FALSE(record.lives_with_root);
}

TEST_CASE("messages: every message cut short, and every message with a byte more, is refused") {
  for (const Message& message : examples()) {
    std::vector<std::byte> bytes = encode(message);
    for (std::size_t length = 0; length < bytes.size(); ++length) REQUIRE_FALSE(decode(std::span(bytes).first(length)).is_ok());
    bytes.push_back(std::byte{0});
    REQUIRE_FALSE(decode(bytes).is_ok());
  }
}

TEST_CASE("messages: a table's ranks must be in order and its root in range; a notice is never a success") {
  Table swapped;
  swapped.peers = {testing::identity(1), testing::identity(0)};
  CHECK_FALSE(decode(encode(swapped)).is_ok());
  Table empty;
  CHECK_FALSE(decode(encode(empty)).is_ok());
  Table outside;
  outside.peers = {testing::identity(0)};
  outside.root_rank = 1;
  CHECK_FALSE(decode(encode(outside)).is_ok());
  CHECK_FALSE(decode(encode(Notice{Code::ok, 0, "fine"})).is_ok());
  CHECK_FALSE(decode(encode(Notice{Code::in_progress, 0, "wait"})).is_ok());
  CHECK_FALSE(decode(encode(Notice{Code::timeout, -2, "who?"})).is_ok());
}

TEST_CASE("messages: a claim is of a rank and a colour that may exist, a placement of a rank below its world, or of none") {
  CHECK_FALSE(decode(encode(Claim{Rank{-1}, 0, 0, 0, ""})).is_ok());
  CHECK_FALSE(decode(encode(Claim{Rank{kMaxWorld}, 0, 0, 0, ""})).is_ok());
  CHECK_FALSE(decode(encode(Claim{Rank{0}, 0, -2, 0, ""})).is_ok());
  CHECK_FALSE(decode(encode(Placement{Rank{2}, World{2}, "", {}})).is_ok());
  CHECK_FALSE(decode(encode(Placement{Rank{-1}, World{2}, "", {}})).is_ok());
  CHECK_FALSE(decode(encode(Placement{Rank{0}, World{0}, "", {}})).is_ok());
  CHECK_FALSE(decode(encode(Placement{Rank{0}, World{kMaxWorld + 1}, "", {}})).is_ok());
  const Result<Message> back = decode(encode(Claim{Rank{5}, 77, 7, -3, "127.0.0.1:4567"}));
  REQUIRE(back.is_ok());
  const Claim& claim = std::get<Claim>(*back);
  CHECK(claim.rank == Rank{5});
  CHECK(claim.members == 77);
  CHECK(claim.colour == 7);
  CHECK(claim.key == -3);
  CHECK(claim.root_address == "127.0.0.1:4567");
}

TEST_CASE("messages: an announced length of gigabytes is refused without being believed") {
  std::vector<std::byte> bytes = encode(Notice{Code::timeout, 0, "abc"});
  for (std::size_t i = 0; i < 4; ++i) bytes[9 + i] = std::byte{0xff};
  CHECK_FALSE(decode(bytes).is_ok());
}

TEST_CASE("messages: a notice's text is cut at its bound") {
  const Result<Message> back = decode(encode(Notice{Code::system_error, 0, std::string(kMaxNoticeText + 5, 'x')}));
  REQUIRE(back.is_ok());
  CHECK(std::get<Notice>(*back).text == std::string(kMaxNoticeText, 'x'));
}

}  // namespace
}  // namespace shoal::comm
