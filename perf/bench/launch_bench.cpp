// SPDX-License-Identifier: Apache-2.0
// What a call costs that moves (almost) nothing, through the public API: of a rank alone, whose calls end at once; of ranks of
// one thread in a group, which need no second core; on a stream. The instructions of a launch, not the latency of a wire: for
// that see shoal-bench-links and shoal-perf -b 8.
#include <benchmark/benchmark.h>
#include <nccl.h>
#include <shoal/shoal.h>

#include <cstddef>
#include <vector>

namespace {

// Communicators of `world` ranks, all driven by this thread.
class Ranks {
 public:
  explicit Ranks(int world) : comms_(static_cast<std::size_t>(world)), input_(kMost, 1.0F), output_(kMost * comms_.size()) {
    made_ = ncclCommInitAll(comms_.data(), world, nullptr) == ncclSuccess;
  }
  ~Ranks() {
    ncclGroupStart();
    for (ncclComm_t comm : comms_) ncclCommDestroy(comm);
    ncclGroupEnd();
  }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  bool made() const { return made_; }
  bool all_reduce(std::size_t count, cudaStream_t stream = nullptr) {
    ncclResult_t result = ncclSuccess;
    for (std::size_t rank = 0; rank < comms_.size() && result == ncclSuccess; ++rank)
      result = ncclAllReduce(input_.data(), output_.data() + rank * kMost, count, ncclFloat, ncclSum, comms_[rank], stream);
    return result == ncclSuccess;
  }

 private:
  static constexpr std::size_t kMost = 16;  // elements
  std::vector<ncclComm_t> comms_;
  std::vector<float> input_, output_;
  bool made_ = false;
};

void alone(benchmark::State& state) {
  Ranks ranks(1);
  for (auto _ : state)
    if (!ranks.made() || !ranks.all_reduce(static_cast<std::size_t>(state.range(0)))) return state.SkipWithError("a call failed");
}
BENCHMARK(alone)->Name("all_reduce/1 rank/elements")->Arg(0)->Arg(1)->Arg(16);

// A group of so many calls: the time of one of them.
void grouped(benchmark::State& state) {
  Ranks ranks(1);
  const auto calls = static_cast<int>(state.range(0));
  for (auto _ : state) {
    bool good = ranks.made() && ncclGroupStart() == ncclSuccess;
    for (int i = 0; i < calls && good; ++i) good = ranks.all_reduce(1);
    if (ncclGroupEnd() != ncclSuccess || !good) return state.SkipWithError("a call failed");
  }
  state.SetItemsProcessed(state.iterations() * calls);
}
BENCHMARK(grouped)->Name("all_reduce/1 rank/calls in a group")->Arg(1)->Arg(16)->Arg(256);

void ranks_of_a_thread(benchmark::State& state) {
  Ranks ranks(static_cast<int>(state.range(0)));
  for (auto _ : state) {
    const bool good = ranks.made() && ncclGroupStart() == ncclSuccess && ranks.all_reduce(2);
    if (ncclGroupEnd() != ncclSuccess || !good) return state.SkipWithError("a call failed");
  }
}
BENCHMARK(ranks_of_a_thread)->Name("all_reduce/8 bytes/ranks of one thread")->Arg(2)->Arg(4)->Arg(8);

// Until the call has returned, and until the work is done.
void on_a_stream(benchmark::State& state) {
  Ranks ranks(1);
  cudaStream_t stream = nullptr;
  if (!ranks.made() || shoalStreamCreate(&stream) != ncclSuccess) return state.SkipWithError("no stream");
  for (auto _ : state)
    if (!ranks.all_reduce(1, stream) || shoalStreamSynchronize(stream) != ncclSuccess) {
      state.SkipWithError("a call failed");
      break;
    }
  shoalStreamDestroy(stream);
}
BENCHMARK(on_a_stream)->Name("all_reduce/1 rank/stream, waited for")->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
