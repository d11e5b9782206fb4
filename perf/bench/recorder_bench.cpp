// SPDX-License-Identifier: Apache-2.0
// What it costs a call to be recorded and checked for mismatches: the flight recorder's stores, and the signature that every
// message carries. To be held against an 8-byte all-reduce on the same machine: shoal-perf all_reduce -b 8 -e 8.
#include <benchmark/benchmark.h>

#include "comm/flight_recorder.h"

namespace {

using namespace shoal;

void record(benchmark::State& state) {
  comm::FlightRecorder recorder;
  std::uint64_t ticket = 0;
  for (auto _ : state) {
    ++ticket;
    recorder.issue({.ticket = ticket, .sequence = ticket, .count = 2});
    recorder.start(ticket, false);
    recorder.choose(ticket, 3);
    recorder.end(ticket, true, false);
    benchmark::ClobberMemory();
  }
}
BENCHMARK(record)->Name("record one small call");

void sign(benchmark::State& state) {
  engine::Call call{.count = {2}};
  for (auto _ : state) {
    ++call.sequence;
    benchmark::DoNotOptimize(engine::signature(call, 12345));
  }
}
BENCHMARK(sign)->Name("signature of one call");

}  // namespace

BENCHMARK_MAIN();
