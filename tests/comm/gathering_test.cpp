// SPDX-License-Identifier: Apache-2.0
#include "comm/gathering.h"

#include <catch2/catch.hpp>

#include "comm/ranks.h"

namespace shoal::comm {
namespace {

Record record(int rank, int world) {
  Record made{"0.1.0", World{world}, testing::identity(rank), rank == 0 ? "zero's" : "", false};
  made.self.pid = 100 + rank;
  return made;
}

TEST_CASE("gathering: complete when every rank has come, in any order; the settings are rank 0's") {
  Gathering gathering;
  CHECK(gathering.missing() == 0);
  for (const int rank : {2, 0, 1}) {
    CHECK_FALSE(gathering.complete());
    REQUIRE(gathering.add(record(rank, 3)).is_ok());
  }
  REQUIRE(gathering.complete());
  const Table table = gathering.table();
  REQUIRE(table.peers.size() == 3);
  for (int rank = 0; rank < 3; ++rank) CHECK(table.peers[static_cast<std::size_t>(rank)].pid == 100 + rank);
  CHECK(table.settings == "zero's");
}

TEST_CASE("gathering: a rank that comes only to say that it failed, and one with other unique ids, are named") {
  Gathering gathering;
  REQUIRE(gathering.add(record(0, 3)).is_ok());
  Record failed = record(2, 3);
  failed.failure = "no memory";
  const Status why = gathering.add(failed);
  CHECK(why.code() == Code::remote_error);
  CHECK(why.culprit() == std::optional(Rank{2}));
  CHECK(why.text() == "rank 2 (node2, pid 102) failed: no memory");
  Record other = record(1, 3);
  other.roots = 2;
  CHECK(gathering.add(other).text() ==
        "rank 1 (node1, pid 101) was given 2 unique ids, rank 0 (node0, pid 100) was given 1: give "
        "all ranks the same ones in the same order");
  other.roots = 1;
  other.roots_digest = 7;
  CHECK_THAT(std::string(gathering.add(other).text()), Catch::Contains("was given others, or in another order"));
}

TEST_CASE("gathering: a contradiction names both ranks") {
  struct Case {
    Record second;
    const char* text;
    int culprit;
  };
  Record other_version = record(1, 3);
  other_version.version = "0.2.0";
  Record same_rank = record(0, 3);
  same_rank.self.pid = 200;
  const Case cases[] = {
      {other_version,
       "rank 1 (node1, pid 101) runs Shoal 0.2.0, rank 0 (node0, pid 100) runs Shoal 0.1.0: all ranks need the same version", 1},
      {record(1, 4),
       "rank 1 (node1, pid 101) says that the communicator has 4 ranks, rank 0 (node0, pid 100) says 3: give all ranks the same "
       "number",
       1},
      {same_rank,
       "two processes say that they are rank 0: rank 0 (node0, pid 100) and rank 0 (node0, pid 200); every rank needs a number "
       "of its own",
       0},
      {record(3, 3),
       "rank 3 (node3, pid 103) is not a rank of a communicator of 3 ranks: allowed are 0 to 2 (first to come was rank 0 (node0, "
       "pid 100))",
       3},
      {record(-1, 3),
       "rank -1 (node-1, pid 99) is not a rank of a communicator of 3 ranks: allowed are 0 to 2 (first to come was rank 0 "
       "(node0, pid 100))",
       -1},
  };
  for (const Case& wrong : cases) {
    Gathering gathering;
    REQUIRE(gathering.add(record(0, 3)).is_ok());
    const Status status = gathering.add(wrong.second);
    CHECK(status.code() == Code::invalid_usage);
    CHECK(std::string(status.text()) == wrong.text);
    REQUIRE(status.culprit());
    CHECK(status.culprit()->value == wrong.culprit);
  }
}

TEST_CASE("gathering: a world of none or of too many is refused") {
  for (const int world : {0, -1, kMaxWorld + 1}) {
    Gathering gathering;
    CHECK(gathering.add(record(0, world)).code() == Code::invalid_usage);
    CHECK_FALSE(gathering.complete());
  }
}

TEST_CASE("gathering: who is missing is listed, up to sixteen") {
  Gathering few;
  REQUIRE(few.add(record(1, 4)).is_ok());
  const Notice notice = few.nobody_else_came(250);
  CHECK(notice.code == Code::timeout);
  CHECK(notice.culprit == 0);
  CHECK(notice.text == "only 1 of 4 ranks came within 250 ms; missing: 0, 2, 3");
  Gathering sixteen;
  REQUIRE(sixteen.add(record(0, 17)).is_ok());
  CHECK(sixteen.nobody_else_came(1).text.ends_with("missing: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16"));
  Gathering many;
  REQUIRE(many.add(record(0, 100)).is_ok());
  CHECK(many.nobody_else_came(1).text.ends_with("14, 15, 16 and 83 more"));
}

}  // namespace
}  // namespace shoal::comm
