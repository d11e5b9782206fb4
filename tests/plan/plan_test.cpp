// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.h"

#include <catch2/catch.hpp>

#include "plan/builder.h"

using namespace shoal;
using namespace shoal::plan;

TEST_CASE("plan: chunks cover the vector without gaps and differ by at most one element") {
  for (std::size_t count : {0uL, 1uL, 2uL, 7uL, 8uL, 9uL, 1000uL, 1048577uL, (std::size_t{1} << 33) + 5})
    for (std::int32_t chunks : {1, 2, 3, 7, 8, 33, 1024}) {
      std::size_t at = 0;
      const std::size_t share = count / static_cast<std::size_t>(chunks);
      for (std::int32_t c = 0; c < chunks; ++c) {
        const Range range = chunk_range({count}, chunks, c);
        REQUIRE(range.begin == at);
        REQUIRE(range.length() >= share);
        REQUIRE(range.length() <= share + 1);
        at = range.end;
      }
      REQUIRE(at == count);
    }
}

TEST_CASE("plan: a rotating index wraps both ways and never leaves its modulus") {
  CHECK(rotating(-1, 0, 4).at(0) == 3);
  CHECK(rotating(1, -1, 4).at(3) == 2);
  CHECK(rotating(2, -1, 4).at(5) == 1);
  CHECK(rotating(3, 1, 4).at(1) == 0);
  CHECK(fixed(7).at(12) == 7);
  const Rotating large = rotating(2, -2147483647, 2147483647);
  CHECK(large.at(2147483647) == 2);
}

TEST_CASE("plan: the builder joins straight-line steps, keeps loops apart and drops empty ones") {
  LaneBuilder lane;
  lane.send(fixed(1), input(rotating(0, 0, 2)));
  lane.recv(fixed(1), output(rotating(0, 0, 2)));
  lane.loop(0, [&] { lane.send(fixed(1), input(rotating(0, 0, 2))); });
  lane.loop(3, [&] { lane.recv_copy_send(fixed(1), output(rotating(0, 1, 2)), fixed(1)); });
  lane.recv(fixed(1), output(rotating(1, 0, 2)));
  const Lane built = lane.take();
  REQUIRE(built.loops.size() == 3);
  CHECK(built.loops[0].steps.size() == 2);
  CHECK(built.loops[1].iterations == 3);
  CHECK(built.loops[2].steps.size() == 1);
  std::vector<std::string> lines;
  for_each_step(built, [&](const Step& step, std::int32_t i) { lines.push_back(describe(step, i)); });
  REQUIRE(lines.size() == 6);
  CHECK(lines[0] == "send to 1: input[0]");
  CHECK(lines[3] == "recv_copy_send from 1 to 1: -> output[1]");
}
