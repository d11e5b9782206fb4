// SPDX-License-Identifier: Apache-2.0
// What comes before the first byte of a call moves: building a rank's plan, and choosing among all of them. A plan is built once
// a call; a choice is made once for all calls of a collective whose lengths are within a factor of two ("choose/first"), and then
// looked up ("choose/again").
//
//   shoal-bench-plans --benchmark_filter='build/all_reduce/.*/64$'
#include <benchmark/benchmark.h>

#include <string>

#include "algorithms/algorithms.h"
#include "comm/selection.h"

namespace {

using namespace shoal;

constexpr int kWorlds[] = {8, 64, 1024};

void build(benchmark::State& state, const algorithms::Algorithm* algorithm, int world) {
  const plan::Request request{.world = {world}, .rank = {world / 3}, .root = {0}, .group = 8};
  const plan::Plan once = algorithm->build(request);
  if (!once.refusal.empty()) return state.SkipWithError(std::string(once.refusal).c_str());
  for (auto _ : state) benchmark::DoNotOptimize(algorithm->build(request));
}

engine::Call call_of(plan::Collective collective) {
  return {.collective = collective, .count = {1 << 16}, .type = DataType::float32};
}

void choose_first(benchmark::State& state, plan::Collective collective, int world) {
  const comm::Situation situation{.world = {world}, .hosts = world / 8, .group = 8, .mappable = world == 8};
  for (auto _ : state) {
    comm::Tuner tuner(comm::Settings{}, situation);
    benchmark::DoNotOptimize(tuner.choose(call_of(collective)));
  }
}

void choose_again(benchmark::State& state, plan::Collective collective) {
  comm::Tuner tuner(comm::Settings{}, {.world = {8}, .group = 8, .mappable = true});
  const engine::Call call = call_of(collective);
  for (auto _ : state) benchmark::DoNotOptimize(tuner.choose(call));
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  for (const algorithms::Algorithm& each : algorithms::all())
    for (const int world : kWorlds)
      benchmark::RegisterBenchmark(fmt::format("build/{}/{}/{}", plan::name_of(each.collective), each.name, world).c_str(), build,
                                   &each, world);
  for (int c = 0; c < plan::kCollectives; ++c) {
    const auto collective = static_cast<plan::Collective>(c);
    for (const int world : {8, 64})
      benchmark::RegisterBenchmark(fmt::format("choose/first/{}/{}", plan::name_of(collective), world).c_str(), choose_first,
                                   collective, world);
    benchmark::RegisterBenchmark(fmt::format("choose/again/{}", plan::name_of(collective)).c_str(), choose_again, collective);
  }
  benchmark::RunSpecifiedBenchmarks();
}
