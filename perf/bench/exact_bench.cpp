// SPDX-License-Identifier: Apache-2.0
// Exact sums: scan, encode, decode, on one thread. bytes_per_second counts elements; their rows are 8 * digits bytes each.
// 4 MiB of elements: rows come from and go to memory, as they do in a collective.
//
//   shoal-bench-exact --benchmark_min_time=0.1
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "core/types.h"
#include "device/convert.h"
#include "device/exact.h"

namespace {

using namespace shoal;
using namespace shoal::device;

constexpr std::size_t kBytes = std::size_t{4} << 20;  // [bytes] elements

// Normally distributed, as gradients are: a few digits, the lowest of which only small values touch.
std::vector<std::byte> normal_elements(DataType type) {
  std::vector<std::byte> bytes(kBytes);
  std::mt19937 random(1);
  std::normal_distribution<double> normal(0, 0.01);
  const std::size_t element = element_bytes(type);
  for (std::size_t at = 0; at < kBytes; at += element) {
    const double value = normal(random);
    const auto single = static_cast<float>(value);
    const std::uint16_t half = to_bfloat16(single);
    const void* const bits = type == DataType::float64    ? static_cast<const void*>(&value)
                             : type == DataType::bfloat16 ? static_cast<const void*>(&half)
                                                          : static_cast<const void*>(&single);
    std::memcpy(bytes.data() + at, bits, element);
  }
  return bytes;
}

enum class Part { scan, encode, decode_sum, decode_avg };

// digits: 0 for what the data need, else that many from the highest needed digit down, or up where those below are used up.
void bench(benchmark::State& state, DataType type, Part part, int digits) {
  const std::vector<std::byte> in = normal_elements(type);
  const std::size_t n = kBytes / element_bytes(type);
  ExactNeeds needs = scan(type, in.data(), n);
  if (digits > window_for(needs).digits) {
    needs.minus_lowest = -(needs.highest - digits + 1);
    if (needs.minus_lowest > 0) {
      needs.highest += needs.minus_lowest;
      needs.minus_lowest = 0;
    }
  }
  const ExactWindow window = window_for(needs);
  std::vector<std::int64_t> rows(n * window.words());
  std::vector<std::byte> out(kBytes);
  bool fits = encode(type, in.data(), n, window, rows.data());
  for (auto _ : state) {
    switch (part) {
      case Part::scan: benchmark::DoNotOptimize(scan(type, in.data(), n)); break;
      case Part::encode: fits &= encode(type, in.data(), n, window, rows.data()); break;
      case Part::decode_sum: decode(type, rows.data(), n, window, 1, out.data()); break;
      case Part::decode_avg: decode(type, rows.data(), n, window, 3, out.data()); break;
    }
    benchmark::ClobberMemory();
  }
  if (!fits) state.SkipWithError("an element does not fit into its window");
  state.SetBytesProcessed(static_cast<std::int64_t>(static_cast<std::size_t>(state.iterations()) * kBytes));
  state.counters["digits"] = window.digits;
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  for (const DataType type : {DataType::bfloat16, DataType::float32, DataType::float64}) {
    for (const int digits : {0, 3, 5}) {
      const std::string name = std::string(name_of(type)) + "/" + (digits == 0 ? "needed" : std::to_string(digits));
      if (digits == 0) benchmark::RegisterBenchmark((name + "/scan").c_str(), bench, type, Part::scan, digits);
      benchmark::RegisterBenchmark((name + "/encode").c_str(), bench, type, Part::encode, digits);
      benchmark::RegisterBenchmark((name + "/decode_sum").c_str(), bench, type, Part::decode_sum, digits);
      benchmark::RegisterBenchmark((name + "/decode_avg3").c_str(), bench, type, Part::decode_avg, digits);
    }
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
