// SPDX-License-Identifier: Apache-2.0
// A rank's work in a step of DGC, beside memcpy of the same vector: accumulate and select, and the sum of four ranks' messages.
// bytes_per_second counts the vector once, for memcpy as well: the ratio of two lines is that of their times.
//
//   shoal-bench-select --benchmark_filter=64MiB --benchmark_repetitions=3
#include <benchmark/benchmark.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "compress/sparse/floats.h"
#include "compress/sparse/indices.h"
#include "compress/sparse/kernels.h"
#include "compress/sparse/select.h"

namespace {

using namespace shoal::compress::sparse;

constexpr double kDensity = 0.001;
constexpr double kSample = 0.001;

void report(benchmark::State& state, std::size_t n) {
  state.SetBytesProcessed(static_cast<std::int64_t>(static_cast<std::size_t>(state.iterations()) * n * sizeof(float)));
}

Floats random_floats(std::size_t n, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  Floats x(n);
  for (float& each : x.span()) each = normal(engine);
  return x;
}

void bench_memcpy(benchmark::State& state, std::size_t n) {
  const Floats from = random_floats(n, 1), to(n);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), n * sizeof(float));
    benchmark::ClobberMemory();
  }
  report(state, n);
}

// Residual alone (gradient dropping), or residual and velocity (DGC); what is selected is taken out.
void bench_select(benchmark::State& state, std::size_t n, bool momentum) {
  const Floats gradient = random_floats(n, 1);
  Remembered residual(n), velocity(n);
  Selector selector;
  std::uint64_t call = 0;
  int rounds = 0;
  for (auto _ : state) {
    selector.select({.input = gradient.data(),
                     .residual = residual.now(),
                     .velocity = momentum ? velocity.now() : nullptr,
                     .next_residual = residual.next(),
                     .next_velocity = velocity.next(),
                     .momentum = 0.9F,
                     .stream = n * sizeof(float) >= kStreamBytes},
                    n, kept(kDensity, n), kSample, ++call);
    for (const std::uint32_t index : selector.selected().indices) residual.next()[index] = velocity.next()[index] = 0;
    residual.step();
    velocity.step();
    rounds += selector.rounds();
  }
  report(state, n);
  state.counters["selected"] = static_cast<double>(selector.selected().size());
  state.counters["rounds"] = rounds;
}

void bench_scatter(benchmark::State& state, std::size_t n) {
  constexpr int kRanks = 4;
  std::vector<std::vector<std::byte>> messages;
  Selector selector;
  for (int r = 0; r < kRanks; ++r) {
    const Floats x = random_floats(n, static_cast<unsigned>(r));
    selector.select({.input = x.data()}, n, kept(kDensity, n), kSample, 1);
    const Layout layout = layout_of(selector.selected(), 0, n, ValueType::fp32);
    encode(selector.selected(), 0, n, ValueType::fp32, layout, messages.emplace_back(layout.bytes).data());
  }
  const Floats out(n);
  for (auto _ : state) {
    fill_zero(out.data(), n);
    for (const auto& each : messages)
      if (!decode_add(each, n, out.data()).is_ok()) state.SkipWithError("malformed");
  }
  report(state, n);
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  for (const std::size_t mib : {1, 16, 64}) {
    const std::string size = std::to_string(mib) + "MiB/";
    const std::size_t n = (mib << 20) / sizeof(float);
    benchmark::RegisterBenchmark((size + "memcpy").c_str(), bench_memcpy, n);
    benchmark::RegisterBenchmark((size + "dropping").c_str(), bench_select, n, false);
    benchmark::RegisterBenchmark((size + "dgc").c_str(), bench_select, n, true);
    benchmark::RegisterBenchmark((size + "sum_of_4").c_str(), bench_scatter, n);
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
