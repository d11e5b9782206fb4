// SPDX-License-Identifier: Apache-2.0
// The checker must catch every way in which a plan can be wrong: each step of each rank's plan is spoilt in turn.
#include <catch2/catch.hpp>
#include <functional>
#include <map>

#include "plan/all_plans.h"
#include "plan/checker.h"

using namespace shoal;
using namespace shoal::plan;

namespace {

// Spoils one step; false where the mutation does not apply or changes nothing.
struct Mutation {
  const char* name;
  std::function<bool(Plan&, Loop&, std::size_t step)> apply;
};

bool shift(Rotating& index, std::int32_t by, std::int32_t modulus) {
  if (modulus < 2) return false;
  const std::int32_t stride = index.stride;
  index = rotating(index.start + by, stride, modulus);
  return true;
}

bool other_peer(Rotating& peer, const Plan& plan) {
  if (plan.world.value < 3) return false;  // with two ranks there is no other peer
  std::int32_t to = peer.start;
  do to = (to + 1) % plan.world.value;
  while (to == plan.rank.value);
  peer = fixed(Rank{to});
  return true;
}

const Mutation kMutations[] = {
    {"drop a step", [](Plan&, Loop& loop,
                       std::size_t i) { return loop.steps.erase(loop.steps.begin() + static_cast<std::ptrdiff_t>(i)), true; }},
    {"repeat a step", [](Plan&, Loop& loop, std::size_t i) { return loop.steps.push_back(loop.steps[i]), true; }},
    {"one iteration less",
     [](Plan&, Loop& loop, std::size_t) { return loop.iterations > 1 ? (--loop.iterations, true) : false; }},
    {"one iteration more",
     [](Plan&, Loop& loop, std::size_t) { return loop.iterations > 1 ? (++loop.iterations, true) : false; }},
    {"swap the peer sent to",
     [](Plan& plan, Loop& loop, std::size_t i) { return sends(loop.steps[i].op) && other_peer(loop.steps[i].to, plan); }},
    {"swap the peer received from",
     [](Plan& plan, Loop& loop, std::size_t i) { return receives(loop.steps[i].op) && other_peer(loop.steps[i].from, plan); }},
    {"shift the source chunk",
     [](Plan& plan, Loop& loop, std::size_t i) {
       return loop.steps[i].source.buffer != Buffer::none && shift(loop.steps[i].source.index, 1, plan.chunks);
     }},
    {"shift the target chunk",
     [](Plan& plan, Loop& loop, std::size_t i) {
       return loop.steps[i].target.buffer != Buffer::none && shift(loop.steps[i].target.index, 1, plan.chunks);
     }},
    {"turn a rotation round",
     [](Plan&, Loop& loop, std::size_t i) {
       Rotating& index = loop.steps[i].source.buffer != Buffer::none ? loop.steps[i].source.index : loop.steps[i].target.index;
       if (index.stride == 0 || index.modulus < 3 || loop.iterations < 2) return false;
       index.stride = -index.stride;
       return true;
     }},
    {"read the output instead of the input",
     [](Plan&, Loop& loop, std::size_t i) {
       if (loop.steps[i].source.buffer != Buffer::input) return false;
       loop.steps[i].source.buffer = Buffer::output;
       return true;
     }},
    {"forget to reduce",
     [](Plan&, Loop& loop, std::size_t i) {
       Step& step = loop.steps[i];
       if (step.op != Op::recv_reduce) return false;
       step.op = Op::recv;
       step.source = {};
       return true;
     }},
    {"flip the final mark", [](Plan&, Loop& loop, std::size_t i) { return loop.steps[i].final = !loop.steps[i].final, true; }},
    {"a chunk out of range",
     [](Plan& plan, Loop& loop, std::size_t i) {
       Chunk& chunk = loop.steps[i].source.buffer != Buffer::none ? loop.steps[i].source : loop.steps[i].target;
       chunk.index = {plan.chunks, 0, 1};
       return true;
     }},
    {"a peer out of range",
     [](Plan& plan, Loop& loop, std::size_t i) {
       if (!sends(loop.steps[i].op)) return false;
       loop.steps[i].to = fixed(Rank{plan.world.value});
       return true;
     }},
};

}  // namespace

TEST_CASE("checker: every mutation of every step of every algorithm is caught") {
  std::map<std::string, int> caught;
  for (const algorithms::Algorithm& algorithm : algorithms::all())
    for (std::int32_t world : {2, 3, 4, 5, 7, 8}) {
      const auto good = plans_of(algorithm, world);
      for (const Mutation& mutation : kMutations)
        for (std::size_t r = 0; r < good.size(); ++r)
          for (std::size_t b = 0; b < good[r].lanes[0].loops.size(); ++b)
            for (std::size_t s = 0; s < good[r].lanes[0].loops[b].steps.size(); ++s) {
              auto plans = good;
              if (!mutation.apply(plans[r], plans[r].lanes[0].loops[b], s)) continue;
              INFO(algorithm.name << ", world " << world << ", " << mutation.name << ", rank " << r << ", loop " << b << ", step "
                                  << s);
              CHECK_FALSE(check_all_modes(plans).is_ok());
              ++caught[mutation.name];
            }
    }
  for (const Mutation& mutation : kMutations) {
    INFO(mutation.name);
    CHECK(caught[mutation.name] > 0);
  }
}

TEST_CASE("checker: a missing credit is caught for every algorithm and world") {
  for (const algorithms::Algorithm& algorithm : algorithms::all())
    for (std::int32_t world = 2; world <= 33; ++world) {
      auto plans = plans_of(algorithm, world);
      for (Plan& plan : plans) --plan.credits;
      INFO(algorithm.name << ", world " << world);
      CHECK_FALSE(check(plans).is_ok());
    }
}
