// SPDX-License-Identifier: Apache-2.0
#include "plan/checker.h"

#include <catch2/catch.hpp>

#include "plan/all_plans.h"
#include "plan/builder.h"

using namespace shoal;
using namespace shoal::plan;
using Catch::Matchers::Contains;

namespace {

// One lane a rank, written by a function of rank and builder.
template <typename F>
std::vector<Plan> by_hand(Collective collective, std::int32_t world, const Plan& header, F&& write) {
  std::vector<Plan> plans;
  for (std::int32_t r = 0; r < world; ++r) {
    LaneBuilder lane;
    write(r, lane);
    Plan plan = header;
    plan.algorithm = "by hand";
    plan.collective = collective;
    plan.world = {world};
    plan.rank = {r};
    plan.lanes.push_back(lane.take());
    plans.push_back(std::move(plan));
  }
  return plans;
}

Chunk in(std::int32_t c) { return input(fixed(c)); }
Chunk out(std::int32_t c) { return output(fixed(c)); }
Chunk slot(std::int32_t s) { return scratch(fixed(s)); }
Chunk common(std::int32_t s) { return shared(fixed(s)); }

std::string verdict(std::span<const Plan> plans) { return std::string(check_all_modes(plans).text()); }

}  // namespace

TEST_CASE("checker: a plan's size does not grow with the world where its pattern is a loop") {
  const auto steps = [](std::int32_t world) {
    const Plan plan = algorithms::find(Collective::all_reduce, "ring")->build({.world = {world}, .rank = {1}});
    std::size_t n = 0;
    for (const Loop& loop : plan.lanes[0].loops) n += loop.steps.size();
    return n;
  };
  CHECK(steps(3) == steps(16384));
}

TEST_CASE("checker: the error names rank, step and chunk") {
  auto plans = plans_of(*algorithms::find(Collective::all_reduce, "ring"), 4);
  plans[2].lanes[0].loops[0].steps[0].source = in(3);  // it should send chunk 1
  CHECK(verdict(plans) == "ring of 4 ranks: rank 3, step 1 (recv_reduce_send from 2 to 0: input[1]): adds chunk 3 to chunk 1");
}

TEST_CASE("checker: a deadlock names who waits for what") {
  const auto plans = plans_of(*algorithms::find(Collective::all_reduce, "ring"), 2);
  CHECK(
      check(plans, {.credits_delta = -2}).text() ==
      "ring of 2 ranks: deadlock with 0 credits; rank 0 at step 0 (send to 1: input[1]); rank 1 at step 0 (send to 0: input[0])");
  CHECK_FALSE(check(plans, {.credits_delta = -1}).is_ok());
  CHECK(check(plans, {.credits_delta = 1}).is_ok());
}

TEST_CASE("checker: headers must agree, and a refusal is everybody's or nobody's") {
  const auto good = plans_of(*algorithms::find(Collective::broadcast, "binomial"), 3, 1);
  REQUIRE(verdict(good) == "success");
  const auto spoilt = [&](auto spoil) {
    auto plans = good;
    spoil(plans[2]);
    return verdict(plans);
  };
  CHECK(spoilt([](Plan& plan) { plan.root = {0}; }) == "binomial of 3 ranks, root 1: rank 2 differs from rank 0 in the root");
  CHECK_THAT(spoilt([](Plan& plan) { plan.chunks = 2; }), Contains("the number of chunks"));
  CHECK_THAT(spoilt([](Plan& plan) { plan.credits = 9; }), Contains("credits"));
  CHECK_THAT(spoilt([](Plan& plan) { plan.by_reference = !plan.by_reference; }), Contains("refer"));
  CHECK_THAT(spoilt([](Plan& plan) { plan.shared = 1; }), Contains("shared"));
  CHECK_THAT(spoilt([](Plan& plan) { plan.order = Order::butterfly; }), Contains("order"));
  CHECK_THAT(spoilt([](Plan& plan) { plan.collective = Collective::reduce; }), Contains("the collective"));
  CHECK_THAT(spoilt([](Plan& plan) { plan.refusal = "no"; }), Contains("whether there is a plan"));
  CHECK_THAT(spoilt([](Plan& plan) { plan.rank = {1}; }), Contains("plan 2 of 3 says it is rank 1 of 3"));
  auto refused = good;
  for (Plan& plan : refused) plan.refusal = "no", plan.lanes.clear();
  CHECK(verdict(refused) == "success");
}

TEST_CASE("checker: what is moved must end where the collective wants it") {
  const auto swapped = by_hand(Collective::all_to_all, 2, {}, [](std::int32_t r, LaneBuilder& lane) {
    lane.copy(in(r), out(1 - r));  // the two blocks change places
    lane.send(fixed(1 - r), in(1 - r));
    lane.recv(fixed(1 - r), out(r));
  });
  CHECK(verdict(swapped) == "by hand of 2 ranks: output[0] of rank 0 ends with chunk 0 of rank 1, not chunk 0 of rank 0");
  const auto nothing =
      by_hand(Collective::all_gather, 2, {}, [](std::int32_t r, LaneBuilder& lane) { lane.copy(in(r), out(r)); });
  CHECK(verdict(nothing) == "by hand of 2 ranks: output[1] of rank 0 ends with nothing written to it");
  const auto stray = by_hand(Collective::gather, 2, {}, [](std::int32_t r, LaneBuilder& lane) {
    if (r == 0) lane.copy(in(0), out(0)), lane.recv(fixed(1), out(1));
    if (r == 1) lane.send(fixed(0), in(1)), lane.copy(in(1), out(1));
  });
  CHECK_THAT(verdict(stray), Contains("this rank has no output[1]"));
  const auto others = by_hand(Collective::all_gather, 2, {}, [](std::int32_t r, LaneBuilder& lane) {
    lane.copy(in(0), out(0)), lane.copy(in(1), out(1));
    (void)r;
  });
  CHECK_THAT(verdict(others), Contains("this rank has no input[1]"));
}

TEST_CASE("checker: a message has as many chunks as its receiver expects, and is received") {
  const auto with = [](std::int32_t sent, bool received) {
    return verdict(by_hand(Collective::broadcast, 2, {.chunks = 4, .credits = 3}, [=](std::int32_t r, LaneBuilder& lane) {
      if (r == 0) {
        lane.copy(window(Buffer::input, fixed(0), 4), window(Buffer::output, fixed(0), 4));
        lane.send(fixed(1), every(Buffer::input, fixed(0), 2, 2));
        lane.send(fixed(1), window(Buffer::input, fixed(3), sent, 2));
        if (!received) lane.send(fixed(1), in(0));
      } else {
        lane.recv(fixed(0), every(Buffer::output, fixed(0), 2, 2));
        lane.recv(fixed(0), window(Buffer::output, fixed(3), 1));
        lane.recv(fixed(0), window(Buffer::output, fixed(1), 1));
      }
    }));
  };
  CHECK_THAT(with(2, true), Contains("a message of 2 chunks arrives, not of 1"));
  CHECK_THAT(with(1, true), Contains("a message of 2 chunks arrives, not of 1"));  // of the next run
  CHECK_THAT(with(1, false), Contains("puts chunk 0 where chunk 1 belongs"));
  const auto left = by_hand(Collective::barrier, 1, {}, [](std::int32_t, LaneBuilder&) {});
  CHECK(verdict(left) == "success");
  const auto unheard = by_hand(Collective::broadcast, 2, {.credits = 2}, [](std::int32_t r, LaneBuilder& lane) {
    if (r == 0) lane.copy(in(0), out(0)), lane.send(fixed(1), in(0)), lane.signal(fixed(1));
    if (r == 1) lane.recv(fixed(0), out(0));
  });
  CHECK(check(unheard, {.slices = 1}).text() == "by hand of 2 ranks, root 0: rank 1 never receives 1 messages from rank 0");
  CHECK_THAT(verdict(unheard), Contains("a message of 0 chunks arrives, not of 1"));
}

TEST_CASE("checker: values of another length fit nowhere else") {
  const auto through = [](Collective collective, std::int32_t chunks, std::int32_t slots, std::int32_t used) {
    return verdict(by_hand(collective, 2, {.chunks = chunks, .scratch = slots}, [=](std::int32_t r, LaneBuilder& lane) {
      const std::int32_t other = 1 - r, space = in_blocks(collective) ? 2 * chunks : chunks;
      const bool to_all = collective == Collective::all_to_all || collective == Collective::all_to_all_v;
      for (std::int32_t c = 0; c < space; ++c) {
        if (to_all || c / chunks == r) lane.copy(in(c), out(to_all ? r * chunks + c % chunks : c));
        if (to_all && c / chunks == r) continue;
        if (!to_all && c / chunks != r) continue;
        lane.copy(in(c), slot(used + c % chunks));
        lane.send(fixed(other), slot(used + c % chunks));
        lane.recv(fixed(other), out(other * chunks + c % chunks));
      }
    }));
  };
  CHECK_THAT(through(Collective::all_gather, 2, 3, 1), Contains("puts chunk 0 into slot 1, which has another length"));
  CHECK(through(Collective::all_gather, 2, 2, 0) == "success");
  CHECK(through(Collective::all_gather, 1, 1, 0) == "success");                                  // all blocks are equal
  CHECK_THAT(through(Collective::all_gather_v, 1, 1, 0), Contains("which has another length"));  // they are not
  CHECK_THAT(through(Collective::all_to_all_v, 1, 1, 0), Contains("whose length this rank does not know"));
}

TEST_CASE("checker: slots are within what is declared, and all of it is needed") {
  const auto with = [](std::int32_t slots) {
    return verdict(by_hand(Collective::all_reduce, 1, {.scratch = slots}, [](std::int32_t, LaneBuilder& lane) {
      lane.copy(in(0), slot(1));
      lane.copy(slot(1), slot(0));
      lane.copy(slot(0), out(0), true);
    }));
  };
  CHECK_THAT(with(1), Contains("slot 1 of 1 does not exist"));
  CHECK(with(2) == "success");
  CHECK_THAT(with(3), Contains("declares too many scratch slots: nobody uses slot 2"));
}

TEST_CASE("checker: scratch is read only after it was written, in each run anew") {
  const auto plans = by_hand(Collective::all_reduce, 1, {.scratch = 1}, [](std::int32_t, LaneBuilder& lane) {
    lane.copy(slot(0), out(0), true);
    lane.copy(in(0), slot(0));
  });
  CHECK_THAT(verdict(plans), Contains("reads scratch[0] before anything was written there"));
}

TEST_CASE("checker: in place, the input is gone once the output was written") {
  const auto plans = by_hand(Collective::all_reduce, 2, {.credits = 2}, [](std::int32_t r, LaneBuilder& lane) {
    lane.send(fixed(1 - r), in(0));
    lane.recv_reduce(fixed(1 - r), in(0), out(0), true);
    lane.send(fixed(1 - r), in(0));
    lane.recv(fixed(1 - r), out(0));
  });
  CHECK_THAT(std::string(check(plans).text()), Contains("ends with 1 of 2 contributions"));
  CHECK_THAT(std::string(check(plans, {.in_place = true}).text()), Contains("reads input[0] after the output took its place"));
}

namespace {

// Rank 0's way up and way down are two lanes; rank 1 adds. `again`: the way up reads the input once more.
std::vector<Plan> up_and_down(bool again) {
  LaneBuilder up, down, root;
  up.send(fixed(1), in(0));
  if (again) up.copy(in(0), slot(0));
  down.recv(fixed(1), out(0));
  root.recv_reduce(fixed(0), in(0), out(0), true);
  root.send(fixed(0), out(0));
  const Plan header{.algorithm = "up and down", .world = {2}, .scratch = again ? 1 : 0, .by_reference = true};
  std::vector<Plan> plans(2, header);
  plans[1].rank = {1};
  plans[0].lanes = {up.take(), down.take()};
  plans[1].lanes = {root.take()};
  return plans;
}

}  // namespace

TEST_CASE("checker: a lane may overwrite the input that another read if the finished sum proves that it was read") {
  CHECK(verdict(up_and_down(false)) == "success");
  CHECK(check(up_and_down(true)).is_ok());
  CHECK_THAT(std::string(check(up_and_down(true), {.in_place = true}).text()),
             Contains("rank 0, lane 1, step 0 (recv from 1: -> output[0]): overwrites input[0], which another lane"));
}

TEST_CASE("checker: two lanes neither write the same chunk nor share an end of a link") {
  LaneBuilder one, two;
  one.copy(in(0), out(0), true);
  two.copy(in(0), out(0), true);
  const std::vector<Plan> twice{{.algorithm = "twice", .world = {1}, .rank = {0}, .lanes = {one.take(), two.take(1)}}};
  CHECK_THAT(verdict(twice), Contains("lanes 0 and 1 both touch output[0]"));

  auto plans = plans_of(*algorithms::find(Collective::all_gather, "two_rings"), 3);
  REQUIRE(verdict(plans) == "success");
  REQUIRE(plans[0].lanes.size() == 2);
  plans = by_hand(Collective::broadcast, 2, {.chunks = 2}, [](std::int32_t r, LaneBuilder& lane) {
    if (r == 0) lane.copy(window(Buffer::input, fixed(0), 2), window(Buffer::output, fixed(0), 2)), lane.send(fixed(1), in(0));
    if (r == 1) lane.recv(fixed(0), out(0));
  });
  LaneBuilder sender, receiver;
  sender.send(fixed(1), in(1));
  receiver.recv(fixed(0), out(1));
  plans[0].lanes.push_back(sender.take(1));
  plans[1].lanes.push_back(receiver.take(1));
  CHECK(verdict(plans) == "success");
  plans[0].lanes[1].channel = plans[1].lanes[1].channel = 0;
  CHECK_THAT(verdict(plans), Contains("lanes 0 and 1 both send to rank 1 on channel 0"));
}

TEST_CASE("checker: by reference, memory is not overwritten before its message was taken for certain") {
  auto plans = plans_of(*algorithms::find(Collective::all_reduce, "recursive_doubling"), 4);
  CHECK(check(plans).is_ok());
  CHECK_THAT(std::string(check(plans, {.links = LinkMode::by_reference}).text()),
             Contains("overwrites output[0] while a send to"));
  // The slot is overwritten in the next run: another send on the same link in between makes that safe, one elsewhere does not.
  const auto staged = [](std::int32_t last) {
    return verdict(
        by_hand(Collective::broadcast, 3, {.scratch = 1, .by_reference = true}, [=](std::int32_t r, LaneBuilder& lane) {
          if (r == 0) {
            lane.copy(in(0), slot(0));
            lane.copy(in(0), out(0));
            lane.send(fixed(1), slot(0));
            lane.send(fixed(2), in(0));
            lane.send(fixed(last), in(0));
          } else {
            lane.recv(fixed(0), out(0));
            if (r == last) lane.recv(fixed(0), out(0));
          }
        }));
  };
  CHECK(staged(1) == "success");
  CHECK_THAT(staged(2), Contains("overwrites scratch[0] while a send to 1 may still refer to it"));
}

TEST_CASE("checker: by reference, a ring that holds a message while it sends needs both of its credits") {
  const auto plans = plans_of(*algorithms::find(Collective::all_reduce, "ring"), 5);
  CHECK(check(plans, {.links = LinkMode::by_reference}).is_ok());
  CHECK_THAT(std::string(check(plans, {.links = LinkMode::by_reference, .credits_delta = -1}).text()),
             Contains("deadlock with 1 credits, by reference"));
}

TEST_CASE("checker: sums are counted once, marked once and added alike on all ranks") {
  const auto swap = [](std::int32_t world, auto&& add) {
    return verdict(by_hand(Collective::all_reduce, world, {.scratch = world}, [&](std::int32_t r, LaneBuilder& lane) {
      for (std::int32_t q = 0; q < world; ++q)
        if (q != r) lane.send(fixed(q), in(0));
      for (std::int32_t q = 0; q < world; ++q) q == r ? lane.copy(in(0), slot(q)) : lane.recv(fixed(q), slot(q));
      add(r, lane);
    }));
  };
  const auto in_order = [](std::int32_t first, std::int32_t second, std::int32_t third, LaneBuilder& lane) {
    lane.copy(slot(first), out(0));
    lane.reduce(slot(second), out(0));
    lane.reduce(slot(third), out(0), true);
  };
  CHECK(swap(3, [&](std::int32_t, LaneBuilder& lane) { in_order(0, 1, 2, lane); }) == "success");
  CHECK(swap(3, [&](std::int32_t r, LaneBuilder& lane) { r == 1 ? in_order(1, 0, 2, lane) : in_order(0, 1, 2, lane); }) ==
        "success");  // a + b = b + a
  CHECK(swap(3, [&](std::int32_t r, LaneBuilder& lane) { in_order(r, (r + 1) % 3, (r + 2) % 3, lane); }) ==
        "by hand of 3 ranks: output[0] of rank 1 ends with another order of additions than that of rank 0");
  CHECK_THAT(swap(3, [&](std::int32_t, LaneBuilder& lane) { in_order(0, 1, 1, lane); }),
             Contains("counts the input of rank 1 twice"));
  CHECK_THAT(swap(2,
                  [&](std::int32_t, LaneBuilder& lane) {
                    lane.copy(slot(0), out(0));
                    lane.reduce(slot(1), out(0));
                  }),
             Contains("completes the sum but is not marked final"));
  CHECK_THAT(swap(2,
                  [&](std::int32_t, LaneBuilder& lane) {
                    lane.copy(slot(0), out(0), true);
                    lane.reduce(slot(1), out(0), true);
                  }),
             Contains("is marked final with 1 of 2 contributions"));
}

TEST_CASE("checker: a promised order of additions is kept") {
  for (const std::int32_t world : {4, 5, 6, 7, 8}) {
    auto plans = plans_of(*algorithms::find(Collective::all_reduce, "ring"), world);
    for (Plan& plan : plans) plan.order = Order::butterfly;
    INFO(world);
    CHECK_THAT(verdict(plans), Contains("adds in another order than the butterfly"));
  }
}

TEST_CASE("checker: sums in a prime field show what was counted twice or never") {
  for (const algorithms::Algorithm& algorithm : algorithms::all()) {
    if (!is_reduction(algorithm.collective)) continue;
    for (const std::int32_t world : {1, 4, 7}) {
      INFO(algorithm.name << " world " << world);
      CHECK(check(plans_of(algorithm, world), {.field = true}).is_ok());
    }
  }
  const auto twice = by_hand(Collective::all_reduce, 3, {.credits = 2}, [](std::int32_t r, LaneBuilder& lane) {
    for (int i = 0; i < 2; ++i) lane.send(fixed((r + 1) % 3), in(0));
    lane.recv_reduce(fixed((r + 2) % 3), in(0), out(0));
    lane.recv_reduce(fixed((r + 2) % 3), out(0), out(0));
  });
  CHECK(check(twice, {.field = true}).text() ==
        "by hand of 3 ranks: output[0] of rank 0 ends with a sum that is not each of 3 contributions once");
}

TEST_CASE("checker: nobody leaves a barrier before all have entered it") {
  const auto rounds = [](std::int32_t world, std::int32_t first, std::int32_t second) {
    return verdict(by_hand(Collective::barrier, world, {}, [=](std::int32_t r, LaneBuilder& lane) {
      for (const std::int32_t distance : {first, second}) {
        if (distance == 0) continue;
        lane.signal(fixed((r + distance) % world));
        lane.wait(fixed((r + world - distance) % world));
      }
    }));
  };
  CHECK(rounds(2, 1, 0) == "success");
  CHECK(rounds(3, 1, 2) == "success");
  CHECK(rounds(4, 1, 2) == "success");
  CHECK_THAT(rounds(3, 1, 0), Contains("ends without having heard of rank"));
  CHECK_THAT(rounds(4, 2, 2), Contains("ends without having heard of rank"));
  CHECK_THAT(rounds(5, 1, 2), Contains("ends without having heard of rank"));
}

TEST_CASE("checker: shared slots are read after they were written and overwritten after they were read") {
  const auto sum = [](bool told, std::int32_t slots) {
    return verdict(by_hand(Collective::all_reduce, 2, {.shared = slots}, [=](std::int32_t r, LaneBuilder& lane) {
      if (told) lane.copy(in(0), common(0));
      lane.signal(fixed(1 - r));
      lane.wait(fixed(1 - r));
      if (!told) lane.copy(in(0), common(0));
      lane.reduce_shared(common(0), out(0), true);
    }));
  };
  CHECK(sum(true, 1) == "success");
  CHECK_THAT(sum(false, 1), Contains("of rank"));
  CHECK_THAT(sum(true, 2), Contains("declares too many shared slots"));

  // The root never hears of its readers: two runs on it overwrites what they may be reading.
  const auto hand_out = [](bool answered) {
    return verdict(by_hand(Collective::broadcast, 2, {.shared = 1, .credits = 2}, [=](std::int32_t r, LaneBuilder& lane) {
      if (r == 0) {
        lane.copy(in(0), out(0));
        lane.copy(in(0), common(0));
        lane.signal(fixed(1));
        if (answered) lane.wait(fixed(1));
      } else {
        lane.wait(fixed(0));
        lane.copy_shared(fixed(0), common(0), out(0));
        if (answered) lane.signal(fixed(0));
      }
    }));
  };
  CHECK(hand_out(true) == "success");
  CHECK_THAT(hand_out(false), Contains("shared[0]"));
}

TEST_CASE("checker: shared slots are proven for 64 ranks, and no more") {
  const auto* one_shot = algorithms::find(Collective::all_reduce, "one_shot");
  REQUIRE(one_shot != nullptr);
  CHECK(check(plans_of(*one_shot, 64)).is_ok());
  const auto plans = by_hand(Collective::all_reduce, 65, {.shared = 1}, [](std::int32_t, LaneBuilder&) {});
  CHECK(check(plans).code() == Code::invalid_argument);
}
