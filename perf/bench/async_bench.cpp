// SPDX-License-Identifier: Apache-2.0
// Communication on a host stream beside computation on the calling thread, through the public API.
//
//   shoal-run -n 2 --bind core shoal-bench-async [ROUNDS [COMPUTE_MS]]
//
// beside:  an all-reduce of 16 MiB is enqueued, then COMPUTE_MS of arithmetic follow; how much longer they take than alone.
// buckets: eight times arithmetic and then an all-reduce of the 25 MiB that it is taken to have made, as data-parallel training
//          does; the arithmetic of a bucket takes as long as its all-reduce alone (100 ms at most). In turn, and with the
//          all-reduces on a stream.
//
// Rank 0 prints "NAME MILLISECONDS" a line: medians over the rounds, of each the mean over the ranks.
#include <nccl.h>
#include <shoal/shoal.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kBeside = (std::size_t{16} << 20) / sizeof(float);  // elements
constexpr std::size_t kBucket = (std::size_t{25} << 20) / sizeof(float);  // elements
constexpr std::size_t kBuckets = 8;
constexpr double kMostComputeMs = 100;  // of a bucket

void require(ncclResult_t result) {
  if (result != ncclSuccess) throw std::runtime_error(ncclGetLastError(nullptr));
}

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// Arithmetic on 16 KiB, which stay in the first-level cache: it needs a core and nothing else.
class Arithmetic {
 public:
  void run(std::size_t repetitions) {
    for (std::size_t i = 0; i < repetitions; ++i)
      for (float& value : values_) value = value * 0.999F + 0.001F;
    sink_ = values_[repetitions % values_.size()];
  }
  // How often it must be repeated to take so long.
  std::size_t repetitions(double milliseconds) {
    constexpr std::size_t kProbe = 1000;
    double least = 1e9;
    for (int i = 0; i < 20; ++i) {
      const auto start = Clock::now();
      run(kProbe);
      least = std::min(least, milliseconds_since(start));
    }
    return std::max<std::size_t>(1, static_cast<std::size_t>(milliseconds / least * kProbe));
  }

 private:
  std::vector<float> values_ = std::vector<float>(4096, 1.5F);
  volatile float sink_ = 0;
};

class Bench {
 public:
  Bench() : input_(kBuckets * kBucket, 1.0F), output_(kBuckets * kBucket) {
    require(shoalCommInitLaunch(&comm_));
    require(ncclCommUserRank(comm_, &rank_));
    require(ncclCommCount(comm_, &ranks_));
    require(shoalStreamCreate(&stream_));
  }
  ~Bench() {
    shoalStreamDestroy(stream_);
    ncclCommDestroy(comm_);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  void beside(int rounds, double compute_ms) {
    const std::size_t work = agreed(arithmetic_.repetitions(compute_ms));
    std::array<std::vector<double>, 4> times;
    for (int round = 0; round <= rounds; ++round) {
      double compute = 0, both = 0;
      const double alone = timed([&] { arithmetic_.run(work); });
      const double reduce = timed([&] { all_reduce(0, kBeside, stream_), wait(); });
      both = timed([&] {
        const auto start = Clock::now();
        all_reduce(0, kBeside, stream_);
        arithmetic_.run(work);
        compute = milliseconds_since(start);
        wait();
      });
      keep(round, times, {alone, reduce, mean(compute), both});
    }
    print({"beside_compute_alone", "beside_all_reduce_alone", "beside_compute", "beside_both"}, times);
  }

  void buckets(int rounds) {
    double reduce = kMostComputeMs;
    for (int i = 0; i < 3; ++i) reduce = std::min(reduce, timed([&] { all_reduce(0, kBucket, nullptr); }));
    const std::size_t work = agreed(arithmetic_.repetitions(reduce));
    std::array<std::vector<double>, 4> times;
    const auto step = [&](bool compute, bool communicate, cudaStream_t stream) {
      for (std::size_t b = 0; b < kBuckets; ++b) {
        if (compute) arithmetic_.run(work);
        if (communicate) all_reduce(b, kBucket, stream);
      }
      wait();
    };
    for (int round = 0; round <= rounds; ++round) {
      const double compute = timed([&] { step(true, false, nullptr); });
      const double communicate = timed([&] { step(false, true, nullptr); });
      const double in_turn = timed([&] { step(true, true, nullptr); });
      const double overlapped = timed([&] { step(true, true, stream_); });
      keep(round, times, {compute, communicate, in_turn, overlapped});
    }
    print({"buckets_compute", "buckets_all_reduce", "buckets_in_turn", "buckets_overlapped"}, times);
  }

 private:
  void all_reduce(std::size_t bucket, std::size_t count, cudaStream_t stream) {
    const std::size_t at = bucket * kBucket;
    require(ncclAllReduce(input_.data() + at, output_.data() + at, count, ncclFloat, ncclSum, comm_, stream));
  }
  void wait() { require(shoalStreamSynchronize(stream_)); }

  double mean(double mine) {
    double sum = 0;
    require(ncclAllReduce(&mine, &sum, 1, ncclDouble, ncclSum, comm_, nullptr));
    return sum / ranks_;
  }
  // Rank 0's.
  std::size_t agreed(std::size_t value) {
    require(ncclBroadcast(&value, &value, 1, ncclUint64, 0, comm_, nullptr));
    return value;
  }
  double timed(const std::function<void()>& what) {
    require(shoalBarrier(comm_, nullptr));
    const auto start = Clock::now();
    what();
    return mean(milliseconds_since(start));
  }
  // The first round warms up.
  static void keep(int round, std::array<std::vector<double>, 4>& times, const std::array<double, 4>& values) {
    for (std::size_t i = 0; round > 0 && i < values.size(); ++i) times[i].push_back(values[i]);
  }
  void print(const std::array<const char*, 4>& names, std::array<std::vector<double>, 4>& times) const {
    for (std::size_t i = 0; rank_ == 0 && i < names.size(); ++i) {
      std::sort(times[i].begin(), times[i].end());
      std::printf("%s %.4f\n", names[i], times[i][times[i].size() / 2]);
    }
  }

  Arithmetic arithmetic_;
  std::vector<float> input_, output_;
  ncclComm_t comm_ = nullptr;
  cudaStream_t stream_ = nullptr;
  int rank_ = 0, ranks_ = 1;
};

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 9;
  const double compute_ms = argc > 2 ? std::atof(argv[2]) : 100;
  if (argc > 3 || rounds < 1 || !(compute_ms > 0)) {
    std::fprintf(stderr, "usage: shoal-bench-async [ROUNDS [COMPUTE_MS]], both above 0\n");
    return 2;
  }
  try {
    Bench bench;
    bench.beside(rounds, compute_ms);
    bench.buckets(rounds);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "shoal-bench-async: %s\n", error.what());
    return 1;
  }
}
