// SPDX-License-Identifier: Apache-2.0
// many_ranks threads|processes N: N ranks on this machine initialise a communicator, all-reduce over links that are made on the
// way, and leave. Prints what it took; fails if a result is wrong.
#include <nccl.h>
#include <shoal/shoal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "support/ranks.h"
#include "support/shared.h"

namespace {

using testing::Ranks;
using Clock = std::chrono::steady_clock;

// In memory that all processes share; microseconds, sums over ranks and the most of any.
struct Figures {
  struct One {
    std::atomic<std::int64_t> sum{0}, most{0};
    void add(std::int64_t value) {
      sum.fetch_add(value);
      std::int64_t before = most.load();
      while (before < value && !most.compare_exchange_weak(before, value)) {
      }
    }
  };
  One init, first_small, small, first_large, large, descriptors, resident_kb;
};

std::int64_t resident_kb() {
  std::ifstream file("/proc/self/statm");
  std::int64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * 4;
}

class Stopwatch {
 public:
  std::int64_t lap() {
    const auto now = Clock::now();
    const auto us = std::chrono::duration_cast<std::chrono::microseconds>(now - last_).count();
    last_ = now;
    return us;
  }

 private:
  Clock::time_point last_ = Clock::now();
};

std::string all_reduce(ncclComm_t comm, const Ranks& ranks, std::size_t count) {
  std::vector<float> data(count);
  for (std::size_t i = 0; i < count; ++i) data[i] = static_cast<float>(i % 97) + static_cast<float>(ranks.rank);
  if (std::string wrong =
          testing::must(ncclAllReduce(data.data(), data.data(), count, ncclFloat, ncclSum, comm, nullptr), "all-reduce");
      !wrong.empty())
    return wrong;
  const auto n = static_cast<float>(ranks.world);
  for (std::size_t i = 0; i < count; ++i)
    if (data[i] != n * static_cast<float>(i % 97) + n * (n - 1) / 2) return "element " + std::to_string(i) + " is wrong";
  return "";
}

std::string body(const Ranks& ranks, Figures& figures) {
  constexpr std::size_t kLarge = 1 << 18;  // elements: 1 MiB
  Stopwatch watch;
  ncclComm_t comm = nullptr;
  if (std::string wrong = testing::init(ranks, comm); !wrong.empty()) return wrong;
  figures.init.add(watch.lap());
  std::string wrong;
  const auto step = [&](std::size_t count, Figures::One& into) {
    if (wrong.empty()) wrong = all_reduce(comm, ranks, count);
    into.add(watch.lap());
  };
  step(2, figures.first_small);
  step(2, figures.small);
  step(kLarge, figures.first_large);
  step(kLarge, figures.large);
  figures.descriptors.add(testing::open_descriptors());
  figures.resident_kb.add(resident_kb());
  if (!wrong.empty()) {
    ncclCommAbort(comm);
    return wrong;
  }
  return testing::must(ncclCommDestroy(comm), "destroy");
}

void print(const char* what, const Figures::One& one, int world, double unit, const char* name) {
  std::printf("  %-28s %10.1f %s most, %10.1f mean\n", what, static_cast<double>(one.most.load()) / unit, name,
              static_cast<double>(one.sum.load()) / unit / world);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "processes";
  const int world = argc > 2 ? std::atoi(argv[2]) : 256;
  if ((how != "threads" && how != "processes") || world < 1 || world > 4096) {
    std::fprintf(stderr, "usage: many_ranks threads|processes N    (N: 1 to 4096)\n");
    return 2;
  }
  const testing::Shared<Figures> shared;
  Figures& figures = *shared;
  const std::string wrong = testing::run_ranks(how == "threads" ? "threads" : "shm", world, 300,
                                               [&](const Ranks& ranks) { return body(ranks, figures); });
  std::printf("%d ranks as %s\n", world, how.c_str());
  print("init", figures.init, world, 1000, "ms");
  print("first all-reduce of 8 B", figures.first_small, world, 1000, "ms");
  print("second", figures.small, world, 1000, "ms");
  print("first all-reduce of 1 MiB", figures.first_large, world, 1000, "ms");
  print("second", figures.large, world, 1000, "ms");
  print("descriptors of a process", figures.descriptors, world, 1, "");
  print("resident memory of a process", figures.resident_kb, world, 1024, "MiB");
  if (!wrong.empty()) std::printf("WRONG: %s\n", wrong.substr(0, 2000).c_str());
  return wrong.empty() ? 0 : 1;
}
