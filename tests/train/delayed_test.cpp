// SPDX-License-Identifier: Apache-2.0
// Delayed averaging in float64, all ranks in one thread: every invariant after every step, whatever the optimiser.
#include "train/parallel/delayed.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <map>
#include <memory>

namespace shoal::train {
namespace {

using Vector = std::vector<double>;

constexpr std::size_t kSize = 7;
constexpr double kClose = 1e-9;

double distance(const Vector& a, const Vector& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}
Vector operator+(Vector a, const Vector& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}
Vector operator-(Vector a, const Vector& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
  return a;
}
Vector operator*(double factor, Vector a) {
  for (double& each : a) each *= factor;
  return a;
}

// Where the ranks' rounds meet. The sum is made when it is first awaited, by when all ranks must have come.
class Meeting {
 public:
  explicit Meeting(std::size_t world) : world_(world) {}

  void start(std::uint64_t round, std::span<double> values) {
    open_[round].push_back(values);
    most_ = std::max(most_, open_.size());
  }
  void wait(std::uint64_t round) {
    order_.push_back(round);
    const auto found = open_.find(round);
    if (found == open_.end()) return;  // another rank has waited
    REQUIRE(found->second.size() == world_);
    Vector sum(found->second.front().size());
    for (const std::span<double> each : found->second) sum = sum + Vector(each.begin(), each.end());
    for (const std::span<double> each : found->second) std::ranges::copy(sum, each.begin());
    open_.erase(found);
  }
  std::size_t most_open() const { return most_; }
  const std::vector<std::uint64_t>& order() const { return order_; }

 private:
  std::size_t world_;
  std::map<std::uint64_t, std::vector<std::span<double>>> open_;
  std::size_t most_ = 0;
  std::vector<std::uint64_t> order_;
};

class Reducer final : public RoundReducer<double> {
 public:
  explicit Reducer(Meeting& meeting) : meeting_(meeting) {}
  void start(std::uint64_t round, std::span<double> values) override { meeting_.start(round, values); }
  void wait(std::uint64_t round) override { meeting_.wait(round); }

 private:
  Meeting& meeting_;
};

// The gradient of rank j at iteration t: another function on each rank, with noise, not linear.
Vector gradient(std::size_t rank, std::size_t t, const Vector& w) {
  Vector g(w.size());
  const auto j = static_cast<double>(rank), at = static_cast<double>(t);
  for (std::size_t i = 0; i < w.size(); ++i) {
    const auto k = static_cast<double>(i);
    g[i] = (1 + 0.3 * j) * (w[i] - 0.5 * j + 0.1 * k) + 0.3 * std::sin(3 * w[i] + j) + 0.2 * std::cos(7 * at + k + j);
  }
  return g;
}

// What an optimiser adds to the parameters; it has its state in itself, a rank its own.
using Optimiser = std::function<Vector(std::size_t t, const Vector& gradient)>;
using MakeOptimiser = std::function<Optimiser()>;

Optimiser sgd() {
  return [](std::size_t, const Vector& g) { return -0.05 * g; };
}
Optimiser scheduled() {
  return [](std::size_t t, const Vector& g) { return (-0.1 / (1 + 0.1 * static_cast<double>(t))) * g; };
}
Optimiser momentum() {
  return [v = Vector(kSize)](std::size_t t, const Vector& g) mutable {
    v = 0.9 * v + g;
    return (-0.02 * (1 + std::cos(0.05 * static_cast<double>(t)))) * v;
  };
}
Optimiser adam() {
  return [m = Vector(kSize), v = Vector(kSize)](std::size_t t, const Vector& g) mutable {
    Vector update(g.size());
    const auto n = static_cast<double>(t);
    for (std::size_t i = 0; i < g.size(); ++i) {
      m[i] = 0.9 * m[i] + 0.1 * g[i];
      v[i] = 0.99 * v[i] + 0.01 * g[i] * g[i];
      update[i] = -0.03 * m[i] / (1 - std::pow(0.9, n)) / (std::sqrt(v[i] / (1 - std::pow(0.99, n))) + 1e-8);
    }
    return update;
  };
}

class World {
 public:
  World(std::size_t ranks, const DelayOptions& options, const MakeOptimiser& make, const OuterOptions& outer = {},
        const Vector& weights = {})
      : options_(options), meeting_(ranks), reducer_(meeting_), initial_(kSize) {
    for (std::size_t i = 0; i < kSize; ++i) initial_[i] = std::sin(static_cast<double>(i));
    for (std::size_t j = 0; j < ranks; ++j) {
      weights_.push_back(weights.empty() ? 1.0 / static_cast<double>(ranks) : weights[j]);
      replicas_.push_back(initial_);
      optimisers_.push_back(make());
      averaging_.push_back(std::make_unique<DelayedAveraging<double>>(options, outer, weights_.back(),
                                                                      std::span<const double>(initial_), reducer_));
    }
  }

  void step() {
    ++t_;
    for (std::size_t j = 0; j < ranks(); ++j) {
      Vector update = optimisers_[j](t_, gradient(j, t_, replicas_[j]));
      replicas_[j] = replicas_[j] + update;
      updates_[t_].push_back(std::move(update));
      averaging_[j]->post(replicas_[j]);
    }
    for (std::size_t j = 0; j < ranks(); ++j) averaging_[j]->settle(replicas_[j]);
  }
  void drain() {
    for (std::size_t j = 0; j < ranks(); ++j) averaging_[j]->end_round(replicas_[j]);
    for (std::size_t j = 0; j < ranks(); ++j) averaging_[j]->drain(replicas_[j]);
  }

  std::size_t ranks() const { return replicas_.size(); }
  std::size_t t() const { return t_; }
  const Vector& replica(std::size_t j) const { return replicas_[j]; }
  const Vector& initial() const { return initial_; }
  const DelayedAveraging<double>& averaging(std::size_t j) const { return *averaging_[j]; }
  const Meeting& meeting() const { return meeting_; }

  Vector mean() const {
    Vector sum(kSize);
    for (std::size_t j = 0; j < ranks(); ++j) sum = sum + weights_[j] * replicas_[j];
    return sum;
  }
  Vector update(std::size_t t, std::size_t j) const { return updates_.at(t)[j]; }
  Vector mean_update(std::size_t t) const {
    Vector sum(kSize);
    for (std::size_t j = 0; j < ranks(); ++j) sum = sum + weights_[j] * update(t, j);
    return sum;
  }
  // The last iteration whose updates have been replaced by their mean.
  std::size_t corrected() const {
    std::size_t last = 0;
    for (std::size_t end = 1; end + options_.delay <= t_; ++end)
      if (options_.round_ends(end)) last = end;
    return last;
  }

 private:
  DelayOptions options_;
  Meeting meeting_;
  Reducer reducer_;
  Vector initial_;
  Vector weights_;
  std::vector<Vector> replicas_;
  std::vector<Optimiser> optimisers_;
  std::vector<std::unique_ptr<DelayedAveraging<double>>> averaging_;
  std::map<std::size_t, std::vector<Vector>> updates_;  // by iteration and rank
  std::size_t t_ = 0;
};

struct Case {
  std::size_t local_steps, delay;
};
const Case kCases[] = {{1, 5}, {5, 20}, {5, 0}, {1, 0}, {3, 7}, {4, 6}, {2, 1}, {6, 17}, {50, 3}};

struct Named {
  const char* name;
  MakeOptimiser make;
};
const Named kOptimisers[] = {{"sgd", sgd}, {"scheduled", scheduled}, {"momentum", momentum}, {"adam", adam}};

constexpr std::size_t kSteps = 53;  // a multiple of no round

TEST_CASE("delayed: a round ends every K iterations, and every one while synchronous") {
  const DelayOptions options{.local_steps = 3};
  CHECK_FALSE(options.round_ends(1));
  CHECK(options.round_ends(3));
  CHECK(options.round_ends(6));
  const DelayOptions post_local{.local_steps = 3, .sync_steps = 4};
  for (const std::size_t t : {1, 2, 3, 4, 7, 10}) CHECK(post_local.round_ends(t));
  for (const std::size_t t : {5, 6, 8, 9}) CHECK_FALSE(post_local.round_ends(t));
}

TEST_CASE("delayed: ceil(D / K) rounds are on their way at a time, and never none") {
  CHECK(DelayOptions{.delay = 20, .local_steps = 5}.in_flight() == 4);
  CHECK(DelayOptions{.delay = 21, .local_steps = 5}.in_flight() == 5);
  CHECK(DelayOptions{.delay = 3, .local_steps = 5}.in_flight() == 1);
  CHECK(DelayOptions{.delay = 0, .local_steps = 5}.in_flight() == 1);
  CHECK(DelayOptions{.delay = 6, .local_steps = 5, .sync_steps = 2}.in_flight() == 6);
}

TEST_CASE(
    "delayed: (i) the mean of replicas moves by the mean of fresh updates, (ii) replicas differ in their latest updates only, "
    "(iii) after the drain they are equal, bit for bit") {
  for (const Named& optimiser : kOptimisers)
    for (const auto& [local_steps, delay] : kCases)
      for (const std::size_t ranks : {1, 2, 3, 5}) {
        INFO(optimiser.name << ", K = " << local_steps << ", D = " << delay << ", " << ranks << " ranks");
        World world(ranks, {.delay = delay, .local_steps = local_steps}, optimiser.make);
        Vector mean = world.initial();
        for (std::size_t t = 1; t <= kSteps; ++t) {
          world.step();
          mean = mean + world.mean_update(t);
          REQUIRE(distance(world.mean(), mean) < kClose);
          REQUIRE(world.t() - world.corrected() < delay + local_steps);
          for (std::size_t j = 0; j < ranks; ++j) {
            Vector away(kSize);
            for (std::size_t i = world.corrected() + 1; i <= t; ++i) away = away + (world.update(i, j) - world.mean_update(i));
            REQUIRE(distance(world.replica(j), mean + away) < kClose);
          }
        }
        world.drain();
        REQUIRE(distance(world.replica(0), mean) < kClose);
        for (std::size_t j = 1; j < ranks; ++j) REQUIRE(world.replica(j) == world.replica(0));
        REQUIRE(world.averaging(0).outstanding() == 0);

        world.step();  // a drain is no end
        mean = mean + world.mean_update(kSteps + 1);
        REQUIRE(distance(world.mean(), mean) < kClose);
      }
}

TEST_CASE("delayed: without delay it is FedAvg, and with K = 1 the synchronous step") {
  for (const Named& optimiser : kOptimisers)
    for (const std::size_t local_steps : {1, 4}) {
      INFO(optimiser.name << ", K = " << local_steps);
      constexpr std::size_t kRanks = 3;
      World world(kRanks, {.local_steps = local_steps}, optimiser.make);
      std::vector<Vector> plain(kRanks, world.initial());
      std::vector<Optimiser> own;
      for (std::size_t j = 0; j < kRanks; ++j) own.push_back(optimiser.make());
      for (std::size_t t = 1; t <= 24; ++t) {
        world.step();
        for (std::size_t j = 0; j < kRanks; ++j) plain[j] = plain[j] + own[j](t, gradient(j, t, plain[j]));
        if (t % local_steps == 0) {
          const Vector mean = (1.0 / kRanks) * (plain[0] + plain[1] + plain[2]);
          plain.assign(kRanks, mean);
          for (std::size_t j = 1; j < kRanks; ++j) REQUIRE(world.replica(j) == world.replica(0));
        }
        for (std::size_t j = 0; j < kRanks; ++j) REQUIRE(distance(world.replica(j), plain[j]) < 1e-12);
      }
    }
}

TEST_CASE("delayed: with K = 1 a step is w -= eta (g(t) - g(t - D) + mean g(t - D))") {
  constexpr std::size_t kRanks = 3, kDelay = 5;
  constexpr double kRate = 0.05;
  World world(kRanks, {.delay = kDelay}, sgd);
  std::vector<Vector> plain(kRanks, world.initial());
  std::map<std::size_t, std::vector<Vector>> gradients;
  for (std::size_t t = 1; t <= 40; ++t) {
    world.step();
    for (std::size_t j = 0; j < kRanks; ++j) gradients[t].push_back(gradient(j, t, plain[j]));
    for (std::size_t j = 0; j < kRanks; ++j) {
      plain[j] = plain[j] - kRate * gradients[t][j];
      if (t <= kDelay) continue;
      const std::vector<Vector>& old = gradients[t - kDelay];
      plain[j] = plain[j] - kRate * ((1.0 / kRanks) * (old[0] + old[1] + old[2]) - old[j]);
    }
    for (std::size_t j = 0; j < kRanks; ++j) REQUIRE(distance(world.replica(j), plain[j]) < 1e-12);
  }
}

TEST_CASE("delayed: without correction replicas are equal at all times and hold the updates of D iterations ago") {
  for (const Named& optimiser : kOptimisers)
    for (const auto& [local_steps, delay] : kCases) {
      INFO(optimiser.name << ", K = " << local_steps << ", D = " << delay);
      World world(3, {.delay = delay, .local_steps = local_steps, .correction = false}, optimiser.make);
      const auto expected = [&](std::size_t last) {
        Vector sum = world.initial();
        for (std::size_t i = 1; i <= last; ++i) sum = sum + world.mean_update(i);
        return sum;
      };
      for (std::size_t t = 1; t <= kSteps; ++t) {
        world.step();
        for (std::size_t j = 1; j < 3; ++j) REQUIRE(world.replica(j) == world.replica(0));
        REQUIRE(distance(world.replica(0), expected(world.corrected())) < kClose);
      }
      world.drain();
      for (std::size_t j = 1; j < 3; ++j) REQUIRE(world.replica(j) == world.replica(0));
      REQUIRE(distance(world.replica(0), expected(kSteps)) < kClose);
    }
}

TEST_CASE("delayed: ranks may weigh differently in the mean") {
  const Vector weights{0.5, 0.2, 0.3};
  World world(3, {.delay = 4, .local_steps = 2}, momentum, {}, weights);
  Vector mean = world.initial();
  for (std::size_t t = 1; t <= kSteps; ++t) {
    world.step();
    mean = mean + world.mean_update(t);
    REQUIRE(distance(world.mean(), mean) < kClose);
  }
  world.drain();
  CHECK(distance(world.replica(2), mean) < kClose);
  CHECK(world.replica(1) == world.replica(0));
}

TEST_CASE("delayed: DiLoCo is local Adam, and Nesterov on the mean of what it did") {
  constexpr std::size_t kRanks = 3, kLocal = 6;
  World world(kRanks, {.local_steps = kLocal}, adam, {.rate = 0.7, .momentum = 0.9});
  Vector theta = world.initial(), velocity(kSize);
  std::vector<Vector> replicas(kRanks, theta);
  std::vector<Optimiser> inner;
  for (std::size_t j = 0; j < kRanks; ++j) inner.push_back(adam());
  for (std::size_t t = 1; t <= 8 * kLocal; ++t) {
    world.step();
    for (std::size_t j = 0; j < kRanks; ++j) replicas[j] = replicas[j] + inner[j](t, gradient(j, t, replicas[j]));
    if (t % kLocal != 0) continue;
    const Vector outer_gradient = theta - (1.0 / kRanks) * (replicas[0] + replicas[1] + replicas[2]);
    velocity = 0.9 * velocity + outer_gradient;
    theta = theta - 0.7 * (outer_gradient + 0.9 * velocity);
    replicas.assign(kRanks, theta);
    for (std::size_t j = 0; j < kRanks; ++j) {
      REQUIRE(distance(world.replica(j), theta) < 1e-12);
      REQUIRE(world.replica(j) == world.replica(0));
    }
  }
}

TEST_CASE("delayed: rounds are awaited by number, each when it is due, and all of them") {
  World world(2, {.delay = 7, .local_steps = 3}, sgd);
  std::size_t awaited = 0;
  for (std::size_t t = 1; t <= kSteps; ++t) {
    world.step();
    const std::size_t due = t < 7 ? 0 : (t - 7) / 3;
    CHECK(world.averaging(0).outstanding() == t / 3 - due);
    CHECK(world.meeting().order().size() == 2 * due);
    awaited = due;
  }
  CHECK(world.meeting().most_open() == DelayOptions{.delay = 7, .local_steps = 3}.in_flight());
  world.drain();
  const std::vector<std::uint64_t>& order = world.meeting().order();
  CHECK(order.size() == 2 * (kSteps / 3 + 1));  // and the round that the drain has ended
  CHECK(awaited < kSteps / 3);
  for (std::size_t i = 0; i < awaited; ++i) CHECK(order[2 * i] == i + 1);  // in steps the ranks take turns ...
  CHECK(std::is_sorted(
      order.begin() + static_cast<std::ptrdiff_t>(2 * awaited),
      order.begin() + static_cast<std::ptrdiff_t>(2 * awaited + order.size() / 2 - awaited)));  // ... then one drains
}

TEST_CASE("delayed: it holds the shared parameters, the base, and two vectors a round on its way") {
  World world(2, {.delay = 7, .local_steps = 3}, sgd);
  CHECK(world.averaging(0).bytes_held() == 2 * kSize * sizeof(double));
  for (std::size_t t = 1; t <= kSteps; ++t) world.step();
  CHECK(world.averaging(0).bytes_held() == (2 + 2 * 3) * kSize * sizeof(double));
  World outer(2, {.local_steps = 3}, sgd, {.rate = 0.7, .momentum = 0.9});
  for (std::size_t t = 1; t <= kSteps; ++t) outer.step();
  CHECK(outer.averaging(0).bytes_held() == (2 + 2 + 1) * kSize * sizeof(double));
}

}  // namespace
}  // namespace shoal::train
