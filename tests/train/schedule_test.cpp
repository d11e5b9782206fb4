// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/schedule.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "train/error.h"

namespace shoal::train {
namespace {

using Catch::Matchers::Contains;

constexpr std::size_t kMostStages = 8, kMostMicroBatches = 17, kMostChunks = 4;

// Every shape of the sweep that has a schedule.
void for_each_shape(const std::function<void(const ScheduleShape&)>& what) {
  for (const ScheduleKind kind :
       {ScheduleKind::gpipe, ScheduleKind::one_f_one_b, ScheduleKind::interleaved, ScheduleKind::zero_bubble})
    for (std::size_t p = 1; p <= kMostStages; ++p)
      for (std::size_t m = 1; m <= kMostMicroBatches; ++m)
        for (std::size_t v = 1; v <= (kind == ScheduleKind::interleaved ? kMostChunks : 1); ++v)
          if (kind != ScheduleKind::interleaved || m % p == 0) what({.kind = kind, .stages = p, .micro_batches = m, .chunks = v});
}

std::string text_of(const ScheduleShape& shape) {
  return fmt::format("{}, {} stages, {} micro-batches, {} chunks", name_of(shape.kind), shape.stages, shape.micro_batches,
                     shape.chunks);
}

std::string words_of(const std::vector<Action>& actions) {
  std::string words;
  for (const Action& action : actions) words += (words.empty() ? "" : " ") + train::text_of(action);
  return words;
}

double d(std::size_t n) { return static_cast<double>(n); }

// An executor whose sends wait until they are taken, in order.
enum class Lanes {
  none,       // a stage goes on when its send has been taken
  peer,       // sends are on a stream for each stage that they go to
  direction,  // ... for each direction
};

class Executor {
 public:
  Executor(const Schedule& schedule, Lanes lanes) : schedule_(schedule), lanes_(lanes), next_(schedule.actions.size()) {}

  // Whether all comes to an end.
  bool run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t stage = 0; stage < next_.size(); ++stage)
        while (next_[stage] < schedule_.actions[stage].size() && step(stage)) moved = true;
    }
    for (std::size_t stage = 0; stage < next_.size(); ++stage)
      if (next_[stage] < schedule_.actions[stage].size()) return false;
    return std::ranges::all_of(sends_, [](const auto& lane) { return lane.second.empty(); });
  }
  bool mixed_up() const { return mixed_up_; }  // a receiver met another message than the one it expected

 private:
  using Lane = std::pair<std::size_t, std::size_t>;  // stage, and what Lanes says
  Lane lane(std::size_t from, std::size_t to, bool forward) const {
    return {from, lanes_ == Lanes::none ? 0 : lanes_ == Lanes::peer ? to : forward};
  }

  bool step(std::size_t stage) {
    const Action& action = schedule_.actions[stage][next_[stage]];
    const bool forward = action.kind == ActionKind::forward;
    if (lanes_ == Lanes::none && !sends_[{stage, 0}].empty()) return false;
    if (const auto from = source_of(schedule_.shape, stage, action); from && from->stage != stage) {
      std::deque<Action>& sent = sends_[lane(from->stage, stage, forward)];
      if (sent.empty()) return false;
      if (sent.front() != Action{action.kind, action.micro_batch, from->chunk}) {
        mixed_up_ = true;
        return false;
      }
      sent.pop_front();
    }
    if (const auto to = destination_of(schedule_.shape, stage, action); to && to->stage != stage)
      sends_[lane(stage, to->stage, forward)].push_back(action);
    next_[stage] += 1;
    return true;
  }

  const Schedule& schedule_;
  Lanes lanes_;
  bool mixed_up_ = false;
  std::vector<std::size_t> next_;
  std::map<Lane, std::deque<Action>> sends_;
};

TEST_CASE("schedule: the orders of three stages and four micro-batches") {
  const auto lists = [](ScheduleKind kind, std::size_t m, std::size_t v = 1) {
    return make_schedule({.kind = kind, .stages = 3, .micro_batches = m, .chunks = v}).actions;
  };
  const auto gpipe = lists(ScheduleKind::gpipe, 4);
  for (const auto& actions : gpipe) CHECK(words_of(actions) == "F0 F1 F2 F3 B0 B1 B2 B3");
  const auto plain = lists(ScheduleKind::one_f_one_b, 4);
  CHECK(words_of(plain[0]) == "F0 F1 F2 B0 F3 B1 B2 B3");
  CHECK(words_of(plain[1]) == "F0 F1 B0 F2 B1 F3 B2 B3");
  CHECK(words_of(plain[2]) == "F0 B0 F1 B1 F2 B2 F3 B3");
  const auto zero = lists(ScheduleKind::zero_bubble, 4);
  CHECK(words_of(zero[0]) == "F0 F1 F2 I0 W0 F3 I1 W1 I2 W2 I3 W3");
  CHECK(words_of(zero[1]) == "F0 F1 I0 F2 I1 W0 F3 I2 W1 I3 W2 W3");
  CHECK(words_of(zero[2]) == "F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3");
  const auto chunks = lists(ScheduleKind::interleaved, 3, 2);
  CHECK(words_of(chunks[2]) == "F0 F1 F2 F0.1 B0.1 F1.1 B1.1 F2.1 B2.1 B0 B1 B2");
}

TEST_CASE("schedule: every stage does every action exactly once, and the lists come to their end") {
  for_each_shape([](const ScheduleShape& shape) {
    INFO(text_of(shape));
    const Schedule schedule = make_schedule(shape);
    REQUIRE_NOTHROW(require_runnable(schedule));
    const std::size_t kinds = shape.kind == ScheduleKind::zero_bubble ? 3 : 2;
    for (const auto& actions : schedule.actions) {
      const std::set<Action> distinct(actions.begin(), actions.end());
      REQUIRE(actions.size() == kinds * shape.micro_batches * shape.chunks);
      REQUIRE(distinct.size() == actions.size());
    }
  });
}

TEST_CASE("schedule: no deadlock with sends that wait until they are taken, on a stream a direction or a stream a peer") {
  for_each_shape([](const ScheduleShape& shape) {
    INFO(text_of(shape));
    const Schedule schedule = make_schedule(shape);
    for (const Lanes lanes : {Lanes::direction, Lanes::peer}) {
      Executor executor(schedule, lanes);
      REQUIRE(executor.run());
      REQUIRE_FALSE(executor.mixed_up());
    }
  });
}

TEST_CASE("schedule: stages that wait for their own sends run gpipe, and lock in 1f1b") {
  const auto runs = [](ScheduleKind kind) {
    const Schedule schedule = make_schedule({.kind = kind, .stages = 3, .micro_batches = 4, .chunks = 1});
    return Executor(schedule, Lanes::none).run();
  };
  CHECK(runs(ScheduleKind::gpipe));
  CHECK_FALSE(runs(ScheduleKind::one_f_one_b));
}

TEST_CASE("schedule: makespan and bubble are the formulas'") {
  const std::vector<ActionTimes> all_times = {{1, 1, 1, 0}, {2, 2, 2, 0}, {1, 1.5, 0.5, 0}, {3, 4, 2, 0}, {2, 3, 1, 0}};
  for (const ActionTimes& t : all_times)
    for_each_shape([&](const ScheduleShape& shape) {
      INFO(text_of(shape) << ", times " << t.forward << " " << t.backward_input << " " << t.backward_weight);
      const double p = d(shape.stages), m = d(shape.micro_batches), v = d(shape.chunks);
      const double whole = t.forward + t.backward_input + t.backward_weight, ideal = m * whole;
      const Timeline timeline = predict(make_schedule(shape), t);
      CHECK(timeline.busy() == Approx(p * ideal));
      if (shape.kind == ScheduleKind::gpipe || shape.kind == ScheduleKind::one_f_one_b) {
        CHECK(timeline.makespan() == Approx((m + p - 1) * whole));
        CHECK(timeline.utilisation() == Approx(m / (m + p - 1)));
        CHECK(timeline.bubble() == Approx((p - 1) / m).margin(1e-12));
      } else if (shape.kind == ScheduleKind::interleaved) {
        CHECK(timeline.makespan() == Approx(ideal + (p - 1) * whole / v));
        CHECK(timeline.bubble() == Approx((p - 1) / (v * m)).margin(1e-12));
      } else {
        // Fewer micro-batches than stages leave fewer weight gradients to fill the bubble with: all but one of the last stage's.
        const double passes = t.forward + t.backward_input;
        if (m >= p) CHECK(timeline.makespan() == Approx(ideal + (p - 1) * (passes - t.backward_weight)));
        if (m <= p) CHECK(timeline.makespan() == Approx((m + p - 1) * passes + t.backward_weight));
      }
    });
}

TEST_CASE("schedule: activations in flight are the formulas'") {
  for_each_shape([](const ScheduleShape& shape) {
    INFO(text_of(shape));
    const Schedule schedule = make_schedule(shape);
    const std::size_t p = shape.stages, m = shape.micro_batches, v = shape.chunks;
    for (std::size_t s = 0; s < p; ++s) {
      INFO("stage " << s);
      const std::size_t peak = peak_in_flight(schedule.actions[s]);
      switch (shape.kind) {
        case ScheduleKind::gpipe: CHECK(peak == m); break;
        case ScheduleKind::one_f_one_b: CHECK(peak == std::min(m, p - s)); break;
        case ScheduleKind::interleaved: CHECK(peak == std::min(m * v, 2 * (p - s - 1) + (v - 1) * p + 1)); break;
        case ScheduleKind::zero_bubble: CHECK(peak == std::min(m, p)); break;
      }
    }
  });
}

TEST_CASE("schedule: what the course draws: 4 stages go from 25 % to 57 % with 4 micro-batches") {
  const auto utilisation = [](std::size_t m) {
    return predict(make_schedule({.kind = ScheduleKind::gpipe, .stages = 4, .micro_batches = m, .chunks = 1}), {}).utilisation();
  };
  CHECK(utilisation(1) == Approx(0.25));
  CHECK(utilisation(4) == Approx(4.0 / 7));
  CHECK(utilisation(8) == Approx(8.0 / 11));
  CHECK(utilisation(32) == Approx(32.0 / 35));
}

TEST_CASE("schedule: gpipe pays for a message at each boundary, once each way") {
  for (std::size_t p = 1; p <= kMostStages; ++p)
    for (std::size_t m = 1; m <= kMostMicroBatches; ++m) {
      const Schedule schedule = make_schedule({.kind = ScheduleKind::gpipe, .stages = p, .micro_batches = m, .chunks = 1});
      CHECK(predict(schedule, {1, 1, 1, 0.25}).makespan() == Approx(3 * d(m + p - 1) + 2 * 0.25 * d(p - 1)));
    }
}

TEST_CASE("schedule: every message has one sender and one receiver, slices beside each other") {
  const ScheduleShape shape{.kind = ScheduleKind::interleaved, .stages = 3, .micro_batches = 3, .chunks = 2};
  const Action first{ActionKind::forward, 0, 0}, second{ActionKind::forward, 0, 1};
  CHECK_FALSE(source_of(shape, 0, first));
  CHECK(destination_of(shape, 2, first) == Slice{0, 1});
  CHECK(source_of(shape, 0, second) == Slice{2, 0});
  CHECK_FALSE(destination_of(shape, 2, second));
  CHECK_FALSE(source_of(shape, 2, {ActionKind::backward, 0, 1}));
  CHECK(destination_of(shape, 0, {ActionKind::backward, 0, 1}) == Slice{2, 0});
  CHECK_FALSE(destination_of(shape, 1, {ActionKind::backward_weight, 0, 0}));
}

TEST_CASE("schedule: the refusals name both numbers") {
  const auto refuses = [](const ScheduleShape& shape, const std::string& text) {
    CHECK_THROWS_WITH(make_schedule(shape), Contains(text));
  };
  refuses({.kind = ScheduleKind::interleaved, .stages = 4, .micro_batches = 6, .chunks = 2},
          "--micro-batches 6 do not divide by the 4 stages");
  refuses({.kind = ScheduleKind::one_f_one_b, .stages = 4, .micro_batches = 6, .chunks = 2},
          "--chunks 2: a stage of --schedule 1f1b has 1");
  refuses({.kind = ScheduleKind::gpipe, .stages = 0, .micro_batches = 6, .chunks = 1}, "0 stages, 6 micro-batches");
  refuses({.kind = ScheduleKind::gpipe, .stages = 2, .micro_batches = 0, .chunks = 1}, "2 stages, 0 micro-batches");
  CHECK_THROWS_WITH(schedule_named("2f2b"), Contains("2f2b is none of gpipe, 1f1b, interleaved, zero-bubble"));
  CHECK(schedule_named("1f1b") == ScheduleKind::one_f_one_b);
}

TEST_CASE("schedule: spoilt lists are refused") {
  const ScheduleShape shape{.kind = ScheduleKind::one_f_one_b, .stages = 3, .micro_batches = 4, .chunks = 1};
  Schedule spoilt = make_schedule(shape);
  std::swap(spoilt.actions[0][2], spoilt.actions[0][3]);  // F2 after B0: both are needed, but not in turn
  CHECK_NOTHROW(require_runnable(spoilt));
  spoilt = make_schedule(shape);
  std::swap(spoilt.actions[1][0], spoilt.actions[1][2]);
  CHECK_THROWS_WITH(require_runnable(spoilt), Contains("stage 0 waits for ever before B0"));
  spoilt = make_schedule(shape);
  spoilt.actions[2].pop_back();
  CHECK_THROWS_WITH(require_runnable(spoilt), Contains("B3 is missing on stage 2"));
  spoilt = make_schedule(shape);
  spoilt.actions[2].push_back({ActionKind::forward, 1});
  CHECK_THROWS_WITH(require_runnable(spoilt), Contains("F1 comes twice on stage 2"));
  spoilt.actions.pop_back();
  CHECK_THROWS_WITH(require_runnable(spoilt), Contains("2 lists of actions for 3 stages"));
}

}  // namespace
}  // namespace shoal::train
