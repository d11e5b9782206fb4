// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "compress/lockstep.h"
#include "compress/sparse/all_reduce.h"

using namespace shoal::compress;
using namespace shoal::compress::sparse;
using shoal::engine::Call;
using testing::Outcome;

namespace {

constexpr std::array kSchedules = {Schedule::automatic, Schedule::gather, Schedule::doubling, Schedule::split, Schedule::dense};

// Sends all elements that are not zero.
class NonZeros final : public Compressor {
 public:
  NonZeros(Schedule schedule, ValueType type) : type_(type), all_reduce_(schedule) {}

  Stages all_reduce(Tensor tensor, Place place) override {
    entries_.clear();
    bool finite = true;
    for (std::size_t i = 0; i < tensor.elements; ++i) {
      finite = finite && std::isfinite(tensor.input[i]);
      if (tensor.input[i] != 0) entries_.push(static_cast<std::uint32_t>(i), tensor.input[i]);
    }
    for (Stages stages = all_reduce_.run(tensor, place, {entries_.view(), type_, finite});;) {
      auto next = stages.next();
      if (!next.is_ok()) co_return next.status();
      if (!next->has_value()) break;
      co_yield std::move(**next);
    }
    report_.encoded_bytes = all_reduce_.encoded_bytes();
    report_.dense = !all_reduce_.finite();
    co_return shoal::Status();
  }
  void save(StateWriter& /*out*/) const override {}
  shoal::Status load(StateReader& /*in*/) override { return {}; }
  Schedule chosen() const { return all_reduce_.chosen(); }

 private:
  ValueType type_;
  AllReduce all_reduce_;
  Entries entries_;
};

testing::Ranks make(Schedule schedule, int world, ValueType type = ValueType::fp32) {
  testing::Ranks ranks;
  for (int r = 0; r < world; ++r) ranks.push_back(std::make_unique<NonZeros>(schedule, type));
  return ranks;
}

using Inputs = std::vector<std::vector<float>>;

// Small whole numbers, so that sums are exact in any order.
Inputs random_inputs(int world, std::size_t n, double density, unsigned seed) {
  std::mt19937 engine(seed);
  std::bernoulli_distribution in(density);
  std::uniform_int_distribution<int> value(1, 9);
  Inputs inputs(static_cast<std::size_t>(world), std::vector<float>(n));
  for (auto& each : inputs)
    for (float& x : each)
      if (in(engine)) x = static_cast<float>(value(engine) * (engine() % 2 == 0 ? 1 : -1));
  return inputs;
}

std::vector<float> sum_of(const Inputs& inputs) {
  std::vector<float> sum(inputs.front().size());
  for (const auto& each : inputs)
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += each[i];
  return sum;
}

double most_received(const Outcome& outcome) { return *std::max_element(outcome.received.begin(), outcome.received.end()); }

// Bandwidth alone: the bytes that a rank receives.
std::function<double(const Call&)> bytes_received(int world) {
  return [p = static_cast<double>(world)](const Call& call) {
    const auto bytes = static_cast<double>(size_of(call.count, call.type).value);
    return call.collective == shoal::plan::Collective::all_reduce ? 2 * (p - 1) / p * bytes : (p - 1) * bytes;
  };
}

}  // namespace

TEST_CASE("Every schedule is the dense sum of the same inputs, at every world, awkward lengths and densities") {
  const int world = GENERATE(1, 2, 3, 4, 5, 6, 7, 8, 9);
  const std::size_t n = GENERATE(0, 1, 2, 57, 255, 4097);
  for (const double density : {0.0, 0.001, 0.1, 1.0})
    for (const ValueType type : {ValueType::fp32, ValueType::fp16}) {
      const Inputs inputs = random_inputs(world, n, density, 5);
      for (const Schedule schedule : kSchedules) {
        CAPTURE(world, n, density, name_of(schedule));
        const Outcome outcome = testing::all_reduce(make(schedule, world, type), inputs);
        REQUIRE(outcome.wrong == "");
        for (const auto& each : outcome.outputs) REQUIRE(each == sum_of(inputs));
      }
    }
}

TEST_CASE("Every schedule ends with the same bits on all ranks where rounding depends on the order") {
  const int world = GENERATE(2, 3, 5, 7, 8, 9);
  for (const double density : {0.05, 0.3, 0.9}) {
    Inputs inputs = random_inputs(world, 999, density, 6);
    for (std::size_t r = 0; r < inputs.size(); ++r)
      for (std::size_t i = 0; i < 999; ++i) inputs[r][i] *= std::ldexp(1.1F, static_cast<int>((i + 7 * r) % 30));
    for (const Schedule schedule : kSchedules) {
      CAPTURE(world, density, name_of(schedule));
      const Outcome outcome = testing::all_reduce(make(schedule, world), inputs);
      REQUIRE(outcome.wrong == "");
      for (const auto& each : outcome.outputs)
        REQUIRE(std::memcmp(each.data(), outcome.outputs.front().data(), 999 * sizeof(float)) == 0);
    }
  }
}

TEST_CASE("The same indices everywhere: doubling's and split's volumes do not grow with the world, gather's does") {
  const std::size_t n = 100000, k = 500;
  for (const int world : {2, 4, 8, 16}) {
    Inputs inputs(static_cast<std::size_t>(world), std::vector<float>(n));
    for (auto& each : inputs)
      for (std::size_t i = 0; i < k; ++i) each[i * 199] = 1;
    const double p = world, message = 1 + 6.0 * k, numbers = 24 * (p - 1);
    const double gather = most_received(testing::all_reduce(make(Schedule::gather, world), inputs));
    const double doubling = most_received(testing::all_reduce(make(Schedule::doubling, world), inputs));
    const double split = most_received(testing::all_reduce(make(Schedule::split, world), inputs));
    CAPTURE(world, gather, doubling, split);
    CHECK(gather == (p - 1) * message + numbers);
    CHECK(doubling == std::log2(p) * (message + 8) + numbers);  // as long in every round
    CHECK(split <= 2 * message + 3 * numbers + 20 * p);
  }
}

TEST_CASE("Indices of one rank alone: doubling's volume is gather's, split's twice what must move") {
  const std::size_t n = 80000, k = 100;
  for (const int world : {2, 4, 8}) {
    Inputs inputs(static_cast<std::size_t>(world), std::vector<float>(n));
    for (std::size_t r = 0; r < inputs.size(); ++r)
      for (std::size_t i = 0; i < k; ++i) inputs[r][i * 800 + 100 * r + i % 7] = 1;
    const double p = world, message = 1 + 6.0 * k, numbers = 24 * (p - 1);
    const double doubling = most_received(testing::all_reduce(make(Schedule::doubling, world), inputs));
    CAPTURE(world, doubling);
    CHECK(doubling == (p - 1) * 6 * k + std::log2(p) * (1 + 8) + numbers);
    const double split = most_received(testing::all_reduce(make(Schedule::split, world), inputs));
    CHECK(split <= message + (p - 1) * message + 3 * numbers + 20 * p);
  }
}

TEST_CASE("Doubling: who sends is received from, every contribution is in every result once") {
  for (int world = 1; world <= 70; ++world) {
    const auto ranks = static_cast<std::size_t>(world);
    std::vector<std::vector<int>> sums(ranks, std::vector<int>(ranks));
    for (std::size_t r = 0; r < ranks; ++r) sums[r][r] = 1;
    for (int round = 0; round < rounds({world}); ++round) {
      const auto before = sums;
      for (std::size_t r = 0; r < ranks; ++r) {
        const Exchange mine = exchange_of({static_cast<std::int32_t>(r)}, {world}, round);
        if (!mine.sends && !mine.receives) continue;
        const Exchange peers = exchange_of({static_cast<std::int32_t>(mine.peer)}, {world}, round);
        CAPTURE(world, round, r);
        REQUIRE(mine.peer != r);
        REQUIRE(peers.peer == r);
        REQUIRE(peers.sends == mine.receives);
        REQUIRE(peers.receives == mine.sends);
        if (!mine.receives) continue;
        if (mine.replaces) std::fill(sums[r].begin(), sums[r].end(), 0);
        for (std::size_t q = 0; q < ranks; ++q) sums[r][q] += before[mine.peer][q];
      }
    }
    for (const auto& each : sums) REQUIRE(each == std::vector<int>(ranks, 1));
  }
}

TEST_CASE("The predicted cheapest schedule moves no more than a little more than the best of them") {
  const std::size_t n = 20000;
  for (const int world : {2, 3, 4, 8, 9})
    for (const double density : {0.001, 0.01, 0.05, 0.1, 0.2, 0.5, 0.9}) {
      const Inputs inputs = random_inputs(world, n, density, 8);
      std::vector<Announcement> announced;
      for (const auto& each : inputs) {
        Entries entries;
        for (std::size_t i = 0; i < n; ++i)
          if (each[i] != 0) entries.push(static_cast<std::uint32_t>(i), each[i]);
        announced.push_back({entries.size(), layout_of(entries.view(), 0, n, ValueType::fp32).bytes, 1});
      }
      const Schedule choice = cheapest(announced, n, ValueType::fp32, bytes_received(world));
      double best = std::numeric_limits<double>::infinity(), chosen = best;
      for (const Schedule each : {Schedule::gather, Schedule::doubling, Schedule::split, Schedule::dense}) {
        const double received = most_received(testing::all_reduce(make(each, world), inputs));
        best = std::min(best, received);
        if (each == choice) chosen = received;
      }
      CAPTURE(world, density, name_of(choice), chosen, best);
      CHECK(chosen <= 1.1 * best + 2000);
    }
}

TEST_CASE("Gather against dense: they cross at the density 2 v / (p (v + i))") {
  // v = 4, i = 2: runs. Two ranks, so that no other schedule is cheaper; below a sixteenth, so that runs are the shortest: values
  // count as if a dense element had 0.25 bytes.
  const std::uint64_t n = 1000000;
  for (const auto& [entries, expected] :
       std::initializer_list<std::pair<std::uint64_t, Schedule>>{{41000, Schedule::gather}, {42000, Schedule::dense}}) {
    const std::vector<Announcement> two(2, {entries, 1 + 6 * entries, 1});
    const auto narrow = [](const Call& call) {
      const double bytes = static_cast<double>(call.count.value);
      return call.collective == shoal::plan::Collective::all_reduce   ? bytes / 4
             : call.collective == shoal::plan::Collective::all_gather ? bytes
                                                                      : 1e9;
    };
    CHECK(cheapest(two, n, ValueType::fp32, narrow) == expected);
  }
}

TEST_CASE("If any rank's input is not finite, all sum the inputs as they are") {
  for (const Schedule schedule : kSchedules) {
    Inputs inputs = random_inputs(3, 100, 0.1, 9);
    inputs[1][7] = std::numeric_limits<float>::infinity();
    inputs[2][8] = std::numeric_limits<float>::quiet_NaN();
    const auto ranks = make(schedule, 3);
    const Outcome outcome = testing::all_reduce(ranks, inputs);
    REQUIRE(outcome.wrong == "");
    const std::vector<float> sum = sum_of(inputs);
    for (std::size_t r = 0; r < 3; ++r) {
      CHECK(ranks[r]->report().dense);
      for (std::size_t i = 0; i < 100; ++i)
        CHECK((outcome.outputs[r][i] == sum[i] || (std::isnan(sum[i]) && std::isnan(outcome.outputs[r][i]))));
    }
  }
}

TEST_CASE("A million elements and three, by every schedule") {
  const Inputs inputs = random_inputs(3, 1000003, 0.001, 10);
  for (const Schedule schedule : kSchedules) {
    const Outcome outcome = testing::all_reduce(make(schedule, 3), inputs);
    REQUIRE(outcome.wrong == "");
    for (const auto& each : outcome.outputs) REQUIRE(each == sum_of(inputs));
  }
}
