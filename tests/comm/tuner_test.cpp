// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "comm/selection.h"

using namespace shoal;
using namespace shoal::comm;
using plan::Collective;

namespace {

engine::Call call_of(Collective collective, std::size_t count) {
  return {.collective = collective, .count = {count}, .type = DataType::float32};
}

}  // namespace

TEST_CASE("tuner: what all-to-all-v runs does not depend on the lengths, which no two ranks share") {
  for (const int world : {2, 3, 8, 16}) {
    Tuner short_blocks(Settings{}, {.world = {world}}), long_blocks(Settings{}, {.world = {world}});
    const Choice first = *short_blocks.choose(call_of(Collective::all_to_all_v, 1));
    for (const std::size_t count :
         {std::size_t{0}, std::size_t{1}, std::size_t{1000}, std::size_t{1} << 20, std::size_t{1} << 32}) {
      const Choice other = *long_blocks.choose(call_of(Collective::all_to_all_v, count));
      CHECK(other.algorithm == first.algorithm);
      CHECK(other.tuning.slice == first.tuning.slice);
    }
  }
}

TEST_CASE("tuner: every collective has a choice for every world and length, the same on every rank") {
  for (int c = 0; c < plan::kCollectives; ++c)
    for (const int world : {1, 2, 3, 7, 16})
      for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{5000}, std::size_t{1} << 22}) {
        Tuner one(Settings{}, {.world = {world}, .group = world}), another(Settings{}, {.world = {world}, .group = world});
        const Result<Choice> a = one.choose(call_of(Collective(c), count)), b = another.choose(call_of(Collective(c), count));
        REQUIRE(a.is_ok());
        CHECK(a->algorithm == b->algorithm);
        CHECK(a->algorithm->build({.world = {world}}).shared == 0);  // nobody said that memory can be mapped
      }
}

TEST_CASE("tuner: ordered numerics lets only plans run that add in the promised tree") {
  Tuner tuner(Settings{}, {.world = {6}, .mappable = true});
  for (const Collective c : {Collective::all_reduce, Collective::reduce, Collective::reduce_scatter})
    for (const std::size_t count : {std::size_t{1}, std::size_t{1} << 22}) {
      engine::Call call = call_of(c, count);
      call.numerics = engine::Numerics::ordered;
      CHECK(tuner.choose(call)->algorithm->build({.world = {6}}).order == plan::Order::butterfly);
    }
}
