// SPDX-License-Identifier: Apache-2.0
// One-bit encoding and decoding of 64 MiB of float32 beside memcpy of as much, at one thread. bytes_per_second counts the float32
// bytes of a tensor, once for each of what is measured: encode + decode against memcpy says what a bit costs.
//
//   shoal-bench-onebit --benchmark_min_time=0.5
#include <benchmark/benchmark.h>

#include <cstring>
#include <string>
#include <vector>

#include "compress/one_bit/one_bit.h"

namespace {

using namespace shoal::compress;
using one_bit::Columns;

constexpr std::size_t kElements = std::size_t{16} << 20;

std::vector<float> tensor() {
  std::vector<float> values(kElements);
  std::uint32_t bits = 1;
  for (float& x : values) x = static_cast<float>(static_cast<std::int32_t>(bits = bits * 1664525 + 1013904223)) * 0x1p-31F;
  return values;
}

void done(benchmark::State& state) {
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(sizeof(float) * kElements));
}

void bench_memcpy(benchmark::State& state) {
  const auto from = tensor();
  auto to = from;
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), sizeof(float) * kElements);
    benchmark::ClobberMemory();
  }
  done(state);
}

enum class Part { encode, encode_residual, decode, both, keep };

void bench(benchmark::State& state, Columns columns, Part part) {
  const auto from = tensor();
  auto to = from;
  std::vector<float> residual(kElements, 0.5F);
  std::vector<std::byte> wire(columns.wire_bytes());
  one_bit::encode(columns, {from.data()}, wire.data());
  for (auto _ : state) {
    if (part == Part::encode || part == Part::both) one_bit::encode(columns, {from.data()}, wire.data());
    if (part == Part::encode_residual) one_bit::encode(columns, {from.data(), 0.5F, residual.data()}, wire.data());
    if (part == Part::decode || part == Part::both) one_bit::decode(columns, wire.data(), to.data());
    if (part == Part::keep) one_bit::keep(columns, from.data(), 0.5F, wire.data(), residual.data());
    benchmark::ClobberMemory();
  }
  done(state);
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  const auto add = [](const std::string& name, Columns columns) {
    benchmark::RegisterBenchmark((name + "/encode").c_str(), bench, columns, Part::encode);
    benchmark::RegisterBenchmark((name + "/decode").c_str(), bench, columns, Part::decode);
    benchmark::RegisterBenchmark((name + "/encode_and_decode").c_str(), bench, columns, Part::both);
    benchmark::RegisterBenchmark((name + "/encode_with_residual").c_str(), bench, columns, Part::encode_residual);
    benchmark::RegisterBenchmark((name + "/keep").c_str(), bench, columns, Part::keep);
  };
  benchmark::RegisterBenchmark("memcpy", bench_memcpy);
  add("4096x4096", Columns::of_matrix(4096, 4096, 4096));
  add("16384x1024", Columns::of_matrix(16384, 1024, 1024));
  add("vector", Columns::of_vector(kElements, 512));
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
