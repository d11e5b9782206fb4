// SPDX-License-Identifier: Apache-2.0
// Simulated times against the formulas of the literature, to rounding; and what must hold for every algorithm.
#include "plan/simulator/simulator.h"

#include <bit>
#include <catch2/catch.hpp>
#include <chrono>

#include "plan/all_plans.h"
#include "plan/builder.h"
#include "plan/counters.h"

using namespace shoal;
using namespace shoal::plan;

namespace {

constexpr double kAlpha = 10e-6, kBeta = 0.3e-9, kGamma = 0.11e-9;

std::vector<Plan> plans_of(Collective collective, std::string_view name, std::int32_t world) {
  const algorithms::Algorithm* algorithm = algorithms::find(collective, name);
  REQUIRE(algorithm != nullptr);
  return ::plans_of(*algorithm, world);
}

Simulation run(const std::vector<Plan>& plans, const Cluster& cluster, const SimulationOptions& options) {
  Result<Simulation> simulation = simulate(plans, cluster, options);
  INFO(simulation.status().text());
  REQUIRE(simulation.is_ok());
  return simulation.take();
}

Approx about(double seconds) { return Approx(seconds).epsilon(1e-12).margin(0); }

// Plans of the given lanes, in the order of ranks, of one chunk.
std::vector<Plan> made(std::vector<LaneBuilder> lanes) {
  std::vector<Plan> plans;
  const World world{static_cast<std::int32_t>(lanes.size())};
  for (LaneBuilder& lane : lanes)
    plans.push_back({.algorithm = "made",
                     .collective = Collective::broadcast,
                     .world = world,
                     .rank = {static_cast<std::int32_t>(plans.size())},
                     .lanes = {lane.take()}});
  return plans;
}

// Rank 0 sends to 1, which passes on, ... to the last.
std::vector<Plan> chain(std::int32_t p) {
  std::vector<LaneBuilder> lanes(static_cast<std::size_t>(p));
  lanes[0].send(fixed(1), input(fixed(0)));
  for (std::int32_t r = 1; r < p - 1; ++r)
    lanes[static_cast<std::size_t>(r)].recv_copy_send(fixed(r - 1), output(fixed(0)), fixed(r + 1));
  lanes.back().recv(fixed(p - 2), output(fixed(0)));
  return made(std::move(lanes));
}

// Each rank r < p / 2 sends to r + p / 2.
std::vector<Plan> across(std::int32_t p) {
  std::vector<LaneBuilder> lanes(static_cast<std::size_t>(p));
  for (std::int32_t r = 0; r < p / 2; ++r) {
    lanes[static_cast<std::size_t>(r)].send(fixed(r + p / 2), input(fixed(0)));
    lanes[static_cast<std::size_t>(r + p / 2)].recv(fixed(r), output(fixed(0)));
  }
  return made(std::move(lanes));
}

}  // namespace

TEST_CASE("simulator: a ring takes 2(p-1) alpha + 2(p-1)/p n beta + (p-1)/p n gamma") {
  for (const std::int32_t p : {2, 3, 4, 5, 6, 7, 8, 9, 16}) {
    const std::size_t n = static_cast<std::size_t>(p) * 40000;
    const double m = 40000, rounds = 2 * (p - 1);
    const std::vector<Plan> plans = plans_of(Collective::all_reduce, "ring", p);
    for (const bool symmetry : {false, true}) {
      const Simulation s = run(plans, uniform({p}, kAlpha, kBeta, kGamma), {.bytes = {n}, .symmetry = symmetry});
      CHECK(s.time_s == about(rounds * (kAlpha + m * kBeta) + (p - 1) * m * kGamma));
      CHECK(s.rounds == static_cast<std::uint64_t>(rounds));
      CHECK(s.period == (symmetry ? 1 : p));
      CHECK(s.messages == static_cast<std::uint64_t>(p) * static_cast<std::uint64_t>(rounds));
      CHECK(s.peak_node_bytes == static_cast<std::uint64_t>(rounds * m));
      CHECK(s.time_s >= s.bound_s);
      CHECK(s.bound_s == about(kAlpha + rounds * m * kBeta));
    }
  }
}

TEST_CASE("simulator: recursive doubling takes lg p (alpha + n beta + n gamma)") {
  for (const std::int32_t p : {2, 4, 8, 16, 64}) {
    const double n = 4000, lg = std::bit_width(static_cast<unsigned>(p)) - 1;
    const Simulation s =
        run(plans_of(Collective::all_reduce, "recursive_doubling", p), uniform({p}, kAlpha, kBeta, kGamma), {.bytes = {4000}});
    CHECK(s.time_s == about(lg * (kAlpha + n * kBeta + n * kGamma)));
    CHECK(s.rounds == static_cast<std::uint64_t>(lg));
  }
}

TEST_CASE("simulator: halving-doubling takes 2 lg p alpha + 2(p-1)/p n beta + (p-1)/p n gamma") {
  for (const std::int32_t p : {2, 4, 8, 16, 64}) {
    const double n = 4096 * p, lg = std::bit_width(static_cast<unsigned>(p)) - 1, share = static_cast<double>(p - 1) / p;
    const Simulation s = run(plans_of(Collective::all_reduce, "halving_doubling", p), uniform({p}, kAlpha, kBeta, kGamma),
                             {.bytes = {static_cast<std::size_t>(n)}});
    CHECK(s.time_s == about(2 * lg * kAlpha + 2 * share * n * kBeta + share * n * kGamma));
  }
}

TEST_CASE("simulator: a binomial tree takes ceil(lg p) (alpha + n beta [+ n gamma])") {
  for (std::int32_t p = 2; p <= 17; ++p) {
    const double n = 8000, levels = std::bit_width(static_cast<unsigned>(p - 1));
    const Simulation down =
        run(plans_of(Collective::broadcast, "binomial", p), uniform({p}, kAlpha, kBeta, kGamma), {.bytes = {8000}});
    // A rank's k-th message is out k n beta after it got its own; the children of farther subtrees come first.
    std::vector<double> there(static_cast<std::size_t>(p));
    double last = 0;
    for (std::int32_t r = 1; r < p; ++r) {
      const std::int32_t bit = r & -r, parent = r - bit;
      int before = 0;
      for (std::int32_t farther = 2 * bit; parent + farther < p && (parent == 0 || farther < (parent & -parent)); farther *= 2)
        ++before;
      last = std::max(
          last, there[static_cast<std::size_t>(r)] = there[static_cast<std::size_t>(parent)] + (before + 1) * n * kBeta + kAlpha);
    }
    CHECK(down.time_s == about(last));
    if (std::has_single_bit(static_cast<unsigned>(p))) CHECK(last == about(levels * (kAlpha + n * kBeta)));
    const Simulation up =
        run(plans_of(Collective::reduce, "binomial", p), uniform({p}, kAlpha, kBeta, kGamma), {.bytes = {8000}});
    if (std::has_single_bit(static_cast<unsigned>(p)))
      CHECK(up.time_s == about(levels * (kAlpha + n * kBeta + n * kGamma)));
    else
      CHECK(up.time_s <= levels * (kAlpha + n * kBeta + n * kGamma) * (1 + 1e-12));
  }
}

TEST_CASE("simulator: all pairs at once take alpha + (p-1) n beta") {
  for (std::int32_t p = 2; p <= 9; ++p) {
    const Simulation s = run(plans_of(Collective::all_reduce, "all_pairs", p), uniform({p}, kAlpha, kBeta), {.bytes = {8000}});
    CHECK(s.time_s == about(kAlpha + (p - 1) * 8000 * kBeta));
    CHECK(s.rounds == 1);
  }
}

TEST_CASE("simulator: a chain of k slices, one at a time on each link, takes (p-2+k)(alpha + c beta)") {
  for (const std::int32_t p : {2, 3, 5, 9})
    for (const std::size_t k : {1, 2, 7, 20}) {
      const double c = 6400;
      const Simulation s =
          run(chain(p), uniform({p}, kAlpha, kBeta), {.bytes = {k * 6400}, .slice = {6400}, .in_flight = 1, .credits = 1});
      CHECK(s.slices == k);
      CHECK(s.time_s == about((p - 2 + static_cast<double>(k)) * (kAlpha + c * kBeta)));
    }
}

TEST_CASE("simulator: with all slices in flight a chain's latencies overlap: (p-1)(alpha + c beta) + (k-1) c beta") {
  for (const std::int32_t p : {2, 3, 5, 9})
    for (const std::size_t k : {1, 2, 7, 20}) {
      const double c = 6400;
      const Simulation s = run(chain(p), uniform({p}, kAlpha, kBeta), {.bytes = {k * 6400}, .slice = {6400}, .in_flight = 20});
      CHECK(s.time_s == about((p - 1) * (kAlpha + c * kBeta) + (static_cast<double>(k) - 1) * c * kBeta));
    }
}

TEST_CASE("simulator: a credit that takes long to come back holds the sender up") {
  Cluster cluster = uniform({2}, kAlpha, kBeta);
  cluster.nics.credit_s = 100e-6;
  const double c = 6400;
  const auto time = [&](std::int32_t credits) {
    return run(chain(2), cluster, {.bytes = {4 * 6400}, .slice = {6400}, .in_flight = 1, .credits = credits}).time_s;
  };
  CHECK(time(1) == about(4 * (kAlpha + c * kBeta) + 3 * 100e-6));
  CHECK(time(2) == about(2 * (kAlpha + c * kBeta) + 100e-6 + c * kBeta));
  CHECK(time(4) == about(kAlpha + 4 * c * kBeta));
}

TEST_CASE("simulator: processors take time to send, to copy and to reduce, one thing at a time") {
  Cluster cluster = uniform({2}, kAlpha, kBeta);
  cluster.overhead_s = 3e-6;
  cluster.copy_Bps = 1e9;
  // Two slices on two tracks of one processor: the second is copied after the first.
  const double c = 6400, copy = c / 1e9;
  const Simulation s = run(chain(2), cluster, {.bytes = {2 * 6400}, .slice = {6400}, .in_flight = 2});
  CHECK(s.time_s == about(2 * (3e-6 + copy) + kAlpha + c * kBeta + copy));

  // A rank without a core of its own waits for the other's.
  Cluster shared = local({4}, {.cores = 0, .latency_s = 0, .overhead_s = 5e-6, .memory_Bps = kUnlimited, .copy_Bps = kUnlimited});
  CHECK(run(across(4), shared, {.bytes = {64}}).time_s == about(5e-6));
  shared.cores_per_host = 1;
  CHECK(run(across(4), shared, {.bytes = {64}}).time_s == about(10e-6));
}

TEST_CASE("simulator: ranks that share a NIC share its bandwidth") {
  Cluster cluster = uniform({2}, kAlpha, kBeta);
  cluster.ranks_per_host = 2;
  const double n = 6400;
  CHECK(run(across(4), cluster, {.bytes = {6400}}).time_s == about(kAlpha + 2 * n * kBeta));
  cluster.nics.per_host = 2;
  CHECK(run(across(4), cluster, {.bytes = {6400}}).time_s == about(kAlpha + n * kBeta));
  cluster.nics.of_local = {1, 1};
  CHECK(run(across(4), cluster, {.bytes = {6400}}).time_s == about(kAlpha + 2 * n * kBeta));
}

TEST_CASE("simulator: the slower of two NICs decides") {
  Cluster cluster = uniform({2}, kAlpha, 0);
  cluster.nics.out_Bps = 1e6;
  cluster.nics.in_Bps = 4e6;
  CHECK(run(across(2), cluster, {.bytes = {1000000}}).time_s == about(kAlpha + 1));
  std::swap(cluster.nics.out_Bps, cluster.nics.in_Bps);
  CHECK(run(across(2), cluster, {.bytes = {1000000}}).time_s == about(kAlpha + 1));
}

TEST_CASE("simulator: an oversubscribed leaf serves one message after the other") {
  Cluster cluster = uniform({4}, kAlpha, kBeta);
  cluster.leaves = {.hosts = 2, .latency_s = 7e-6, .uplink_Bps = 1 / kBeta};  // two hosts, the up-link of one
  const double n = 6400;
  const Simulation s = run(across(4), cluster, {.bytes = {6400}});
  CHECK(s.time_s == about(kAlpha + 7e-6 + 2 * n * kBeta));
  CHECK(s.bytes[static_cast<std::size_t>(LinkClass::spine)] == 2 * 6400);
  REQUIRE(!s.busiest.empty());
  CHECK(s.busiest[0].name == "leaf 0 up");
  CHECK(s.busiest[0].bytes == 2 * 6400);
  CHECK(s.busiest[0].busy_s == about(2 * n * kBeta));
  cluster.leaves.uplink_Bps = kUnlimited;
  CHECK(run(across(4), cluster, {.bytes = {6400}}).time_s == about(kAlpha + 7e-6 + n * kBeta));
}

TEST_CASE("simulator: ranks of one host use its wires, its ports or its memory") {
  Cluster host = local({4}, {.latency_s = 1e-6, .overhead_s = 0, .memory_Bps = 1e9, .copy_Bps = kUnlimited});
  const std::vector<Plan> two = across(4);
  CHECK(run(two, host, {.bytes = {1000}}).time_s == about(1e-6 + 2e-6));  // one memory
  host.within.through = Within::pairs;
  CHECK(run(two, host, {.bytes = {1000}}).time_s == about(1e-6 + 1e-6));
  // From one rank to two others: wires of their own, but one port.
  std::vector<LaneBuilder> lanes(3);
  lanes[0].send(fixed(1), input(fixed(0)));
  lanes[0].send(fixed(2), input(fixed(0)));
  lanes[1].recv(fixed(0), output(fixed(0)));
  lanes[2].recv(fixed(0), output(fixed(0)));
  const std::vector<Plan> fan = made(std::move(lanes));
  CHECK(run(fan, host, {.bytes = {1000}}).time_s == about(1e-6 + 1e-6));
  host.within.through = Within::switched;
  CHECK(run(fan, host, {.bytes = {1000}}).time_s == about(1e-6 + 2e-6));
}

TEST_CASE("simulator: eight ranks stand for 64 on hosts of eight, to the bit") {
  for (const std::string_view name : {"nvlink8", "rail1024"})
    for (const std::size_t slice : {0, 4096})
      for (const std::string_view algorithm : {"ring", "two_rings"}) {
        const Cluster cluster = preset(name, {64}).take();
        const std::vector<Plan> plans = plans_of(Collective::all_reduce, algorithm, 64);
        SimulationOptions options{.bytes = {1 << 20}, .slice = {slice}, .in_flight = 4};
        const Simulation some = run(plans, cluster, options);
        options.symmetry = false;
        const Simulation all = run(plans, cluster, options);
        INFO(name << " " << algorithm << " slice " << slice);
        CHECK(some.period == 8);
        CHECK(all.period == 64);
        CHECK(some.time_s == all.time_s);
        CHECK(some.rounds == all.rounds);
        CHECK(some.messages == all.messages);
        CHECK(some.bytes == all.bytes);
        CHECK(some.peak_node_bytes == all.peak_node_bytes);
      }
}

TEST_CASE("simulator: where chunks differ or plans do, all ranks are run") {
  const Cluster cluster = uniform({8}, kAlpha, kBeta);
  CHECK(run(plans_of(Collective::all_reduce, "ring", 8), cluster, {.bytes = {4 * 81}}).period == 8);
  CHECK(run(plans_of(Collective::all_reduce, "tree", 8), cluster, {.bytes = {64}}).period == 8);
  CHECK(run(plans_of(Collective::all_reduce, "recursive_doubling", 8), cluster, {.bytes = {64}}).period ==
        4);  // r xor 4 is r + 4
  std::vector<Plan> plans = plans_of(Collective::all_reduce, "ring", 8);
  CHECK(run(plans, cluster, {.bytes = {64}}).period == 1);
  plans[6].lanes[0].loops[1].steps.insert(plans[6].lanes[0].loops[1].steps.begin(),
                                          Step{.op = Op::copy, .source = output(fixed(0)), .target = output(fixed(0))});
  CHECK(run(plans, cluster, {.bytes = {64}}).period == 8);
}

TEST_CASE("simulator: every algorithm moves the messages that are counted, no faster than is possible, the same each time") {
  for (const algorithms::Algorithm& algorithm : algorithms::all())
    for (const std::int32_t p : {1, 2, 3, 5, 8, 9, 16})
      for (const std::string_view name : {"nvlink8", "ethernet25", "home", "wan", "local"}) {
        const std::vector<Plan> plans = ::plans_of(algorithm, p, 0, p == 16 ? 4 : 0);
        if (!plans[0].refusal.empty()) continue;
        INFO(name_of(algorithm.collective) << " " << algorithm.name << " in a world of " << p << " on " << name);
        const Cluster cluster = preset(name, {p}).take();
        const SimulationOptions options{.bytes = {4000}};
        Result<Simulation> s = simulate(plans, cluster, options);
        if (!s.is_ok() && plans[0].shared != 0 && cluster.hosts > 1) {
          CHECK(s.status().text().find("needs all ranks on one host") != std::string_view::npos);
          continue;
        }
        INFO(s.status().text());
        REQUIRE(s.is_ok());
        const Result<Counters> counters = count(plans, options.bytes, options.element_bytes);
        REQUIRE(counters.is_ok());
        std::uint64_t direct = 0;
        for (const Counters::Node& node : counters->nodes) direct += node.direct_read;
        CHECK(s->messages == counters->messages);
        CHECK(s->signals == counters->signals);
        CHECK(s->total_bytes == counters->total + direct);
        CHECK(s->peak_node_bytes == counters->peak_node);
        CHECK(s->time_s >= s->bound_s);
        CHECK((s->time_s > 0) == (p > 1 || algorithm.collective != Collective::barrier));
        CHECK(simulate(plans, cluster, options)->time_s == s->time_s);
        CHECK(*price(plans, cluster, options) == simulate(plans, cluster, {.bytes = {4000}, .symmetry = false})->time_s);
      }
}

TEST_CASE("simulator: the critical path leads without gaps to the end") {
  const Cluster cluster = preset("ethernet25", {8}).take();
  for (const std::string_view name : {"ring", "double_tree", "halving_doubling", "all_pairs"}) {
    const Simulation s = run(plans_of(Collective::all_reduce, name, 8), cluster,
                             {.bytes = {1 << 16}, .slice = {1 << 10}, .in_flight = 4, .symmetry = false, .path_steps = 100000});
    INFO(name);
    REQUIRE(!s.path.empty());
    CHECK(s.path_length == s.path.size());
    CHECK(s.path.front().after == PathStep::After::start);
    CHECK(s.path.front().start_s == 0);
    CHECK(s.path.back().end_s == s.time_s);
    std::uint64_t messages = 0;
    for (std::size_t i = 1; i < s.path.size(); ++i) {
      CHECK(s.path[i].start_s >= s.path[i - 1].end_s);
      if (s.path[i].after == PathStep::After::processor) CHECK(s.path[i].start_s == s.path[i - 1].end_s);
      messages += s.path[i].after == PathStep::After::message ? 1 : 0;
    }
    CHECK(messages == s.rounds);
  }
  const Simulation s = run(plans_of(Collective::all_reduce, "ring", 8), cluster, {.bytes = {1 << 16}, .path_steps = 3});
  REQUIRE(s.path.size() == 3);
  CHECK(s.path_length == 2 * 7 + 1);
  CHECK(s.path.back().text.rfind("recv from", 0) == 0);
}

TEST_CASE("simulator: a price of many slices goes by the slope of fewer") {
  const Cluster cluster = preset("ethernet25", {8}).take();
  for (const std::string_view name : {"ring", "double_tree", "chain"}) {
    const std::vector<Plan> plans = plans_of(Collective::all_reduce, name, 8);
    const SimulationOptions options{.bytes = {32 << 20}, .slice = {16 << 10}, .in_flight = 4, .symmetry = false};
    const Simulation s = run(plans, cluster, options);
    INFO(name);
    CHECK(s.slices > 64);
    CHECK(*price(plans, cluster, options) == Approx(s.time_s).epsilon(0.01));
  }
}

TEST_CASE("simulator: slices are as long as the widest message of any rank and the window of shared slots allow") {
  const Cluster cluster = local({4});
  const auto slices = [&](Collective collective, std::string_view name, const SimulationOptions& options) {
    return run(plans_of(collective, name, 4), cluster, options).slices;
  };
  CHECK(slices(Collective::all_reduce, "ring", {.bytes = {1 << 16}, .slice = {1 << 12}}) == 4);
  CHECK(slices(Collective::all_reduce, "halving_doubling", {.bytes = {1 << 16}, .slice = {1 << 12}}) == 8);  // two chunks
  CHECK(slices(Collective::all_reduce, "one_shot", {.bytes = {1 << 16}, .slice = {1 << 12}}) == 1);
  CHECK(slices(Collective::all_reduce, "one_shot", {.bytes = {1 << 16}, .window = {1 << 14}}) == 8);  // two sets of one slot
  CHECK(slices(Collective::all_to_all_v, "pairwise", {.bytes = {1 << 16}, .slice = {1 << 12}}) == 16);
  CHECK(slices(Collective::barrier, "tree", {}) == 1);
  // The same from a function as from plans.
  const algorithms::Algorithm* halving = algorithms::find(Collective::all_reduce, "halving_doubling");
  const auto built = simulate({6}, [&](Rank r) { return halving->build({.world = {6}, .rank = r}); }, local({6}),
                              {.bytes = {1 << 16}, .slice = {1 << 12}});
  REQUIRE(built.is_ok());
  const Simulation held =
      run(plans_of(Collective::all_reduce, "halving_doubling", 6), local({6}), {.bytes = {1 << 16}, .slice = {1 << 12}});
  CHECK(built->slices == held.slices);
  CHECK(built->time_s == held.time_s);
}

TEST_CASE("simulator: what it cannot run it refuses in words") {
  const std::vector<Plan> plans = plans_of(Collective::all_reduce, "all_pairs", 64);
  const Cluster cluster = uniform({64}, kAlpha, kBeta);
  const auto error = [&](const Cluster& on, const SimulationOptions& options) {
    const Result<Simulation> s = simulate(plans, on, options);
    return s.is_ok() ? std::string() : std::string(s.status().text());
  };
  CHECK(error(cluster, {.bytes = {64}, .symmetry = false, .max_events = 10000}) ==
        "all_pairs in a world of 64: 4032 messages, about 20160 events, which is above the budget of 10000 (--max-events); fewer "
        "or longer slices, or a smaller world, take less");
  CHECK(error(uniform({63}, kAlpha, kBeta), {.bytes = {64}}) == "the cluster uniform has 63 ranks: the world has 64");
  CHECK(error(cluster, {.bytes = {65}}) == "65 bytes are not whole elements of 4 bytes");
  CHECK(error(cluster, {.bytes = {64}, .in_flight = 0}) == "0 slices in flight: at least 1");
  CHECK(error(cluster, {.bytes = {64}, .in_flight = 65}) == "all_pairs: 1 lanes with 65 slices in flight: at most 64 together");
  Cluster broken = cluster;
  broken.nics.latency_s = -1;
  CHECK(error(broken, {.bytes = {64}}) == "nics.latency_s is -1: a number of seconds from 0 to 1e6");

  std::vector<Plan> stuck = chain(3);
  stuck[1].lanes[0].loops[0].steps[0].op = Op::recv;
  const Result<Simulation> s = simulate(stuck, uniform({3}, kAlpha, kBeta), {.bytes = {64}});
  REQUIRE(!s.is_ok());
  CHECK(s.status().text().find("rank 2 waits for ever in: recv from 1: -> output[0]") != std::string_view::npos);
  CHECK(run(chain(3), uniform({3}, kAlpha, kBeta), {.bytes = {0}}).time_s == 0);
}

TEST_CASE("simulator: 16,384 ranks", "[.huge]") {
  const World world{16384};
  const auto timed = [&](std::string_view algorithm, std::string_view on, bool symmetry) {
    const algorithms::Algorithm* found = algorithms::find(Collective::all_reduce, algorithm);
    REQUIRE(found != nullptr);
    const auto start = std::chrono::steady_clock::now();
    const Result<Simulation> s = simulate(world, [&](Rank r) { return found->build({.world = world, .rank = r}); },
                                          preset(on, world).take(), {.bytes = {1u << 30}, .symmetry = symmetry});
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    INFO(s.status().text());
    REQUIRE(s.is_ok());
    WARN(fmt::format("{} on {}: {:.6g} s (bound {:.6g} s), {} ranks run, {} events in {:.2f} s", algorithm, on, s->time_s,
                     s->bound_s, s->period, s->events, seconds));
    CHECK(s->time_s >= s->bound_s);
    return s->time_s;
  };
  for (const std::string_view on : {"nvlink8", "rail1024", "ethernet25"}) {
    timed("ring", on, true);
    CHECK(timed("halving_doubling", on, true) == timed("halving_doubling", on, false));
  }
}

TEST_CASE("simulator: how long a price takes", "[.speed]") {
  const Cluster cluster = preset("nvlink8", {8}).take();
  for (const std::string_view name : {"ring", "halving_doubling", "double_tree"}) {
    const std::vector<Plan> plans = plans_of(Collective::all_reduce, name, 8);
    for (const std::size_t bytes : {std::size_t{1} << 16, std::size_t{1} << 28}) {
      const auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < 100; ++i) (void)price(plans, cluster, {.bytes = {bytes}, .slice = {bytes > 1 << 20 ? 64u << 10 : 0}});
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / 100;
      WARN(name << " " << bytes << " B: " << seconds * 1e6 << " us");
    }
  }
}
