// SPDX-License-Identifier: Apache-2.0
#include "plan/compose.h"

#include <catch2/catch.hpp>

#include "plan/builder.h"

using namespace shoal;
using namespace shoal::plan;

namespace {

std::vector<std::string> lines(const Lane& lane) {
  std::vector<std::string> text;
  for_each_step(lane, [&](const Step& step, std::int32_t i) { text.push_back(describe(step, i)); });
  return text;
}

}  // namespace

TEST_CASE("compose: ranks and chunks of the part are placed among those of the whole") {
  LaneBuilder part;
  part.loop(3, [&] { part.recv_reduce_send(rotating(0, 1, 3), input(rotating(1, 1, 3)), rotating(2, -1, 3)); });
  part.recv_reduce(fixed(1), input(fixed(2)), output(fixed(2)), /*final=*/true);
  const Lane lane = part.take();
  CHECK(lines(embed(lane, {.rank_base = 1, .rank_scale = 4, .chunk_base = 6})) ==
        std::vector<std::string>{"recv_reduce_send from 1 to 9: input[7]", "recv_reduce_send from 5 to 5: input[8]",
                                 "recv_reduce_send from 9 to 1: input[6]", "recv_reduce from 5: input[8] -> output[8] final"});
  CHECK(lines(embed(lane, {.rank_base = 2, .rank_scale = -1, .width = 2, .input = Buffer::output, .finishes = false})) ==
        std::vector<std::string>{"recv_reduce_send from 2 to 0: output[2..3]", "recv_reduce_send from 1 to 1: output[4..5]",
                                 "recv_reduce_send from 0 to 2: output[0..1]",
                                 "recv_reduce from 1: output[4..5] -> output[4..5]"});
}

TEST_CASE("compose: sets stay sets, chunk by chunk") {
  LaneBuilder part;
  part.send(fixed(0), window(Buffer::output, fixed(3), 2, 4));
  part.send(fixed(0), every(Buffer::scratch, fixed(0), 2, 2));
  part.send(fixed(0), every(Buffer::output, fixed(0), 2, -2, 4));
  CHECK(lines(embed(part.take(), {.width = 2})) == std::vector<std::string>{"send to 0: output[6..7,0..1]",
                                                                            "send to 0: scratch[0..1,4..5]",
                                                                            "send to 0: output[0..1,4..5]"});
}

TEST_CASE("compose: a copy of a place to itself is left out, phases follow each other") {
  LaneBuilder first, second;
  first.send(fixed(1), input(fixed(0)));
  second.copy(input(fixed(0)), output(fixed(0)));
  second.signal(fixed(1));
  Lane lane = first.take();
  append(lane, embed(second.take(), {.input = Buffer::output}));
  CHECK(lines(lane) == std::vector<std::string>{"send to 1: input[0]", "signal to 1"});
}
