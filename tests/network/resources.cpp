// SPDX-License-Identifier: Apache-2.0
// resources [--rounds N] [--live N] [--ranks N] [--transport shm|tcp]: makes and destroys communicators one after another, then
// holds many at once, and prints what a rank's process holds: descriptors, threads, mappings, resident KiB. Exit status 1 if
// something grew from round to round, or descriptors or threads are left at the end (malloc may keep what many at once took).
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "network/rounds.h"

using namespace testing;

namespace {

struct Options {
  int rounds = 1000, live = 100, ranks = 4;
  std::string transport = "shm";
};

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    int* const number = name == "--rounds"  ? &options.rounds
                        : name == "--live"  ? &options.live
                        : name == "--ranks" ? &options.ranks
                                            : nullptr;
    if (name == "--transport" && (std::strcmp(argv[i + 1], "shm") == 0 || std::strcmp(argv[i + 1], "tcp") == 0)) {
      options.transport = argv[i + 1];
      continue;
    }
    const char* const end = argv[i + 1] + std::strlen(argv[i + 1]);
    if (number == nullptr || std::from_chars(argv[i + 1], end, *number).ptr != end || *number < 1) return false;
  }
  return argc % 2 == 1 && options.ranks <= 32;
}

void print(const char* when, const Holdings& held, double ms_each) {
  std::printf("%-32s %11d %7d %8d %12ld %10.2f\n", when, held.descriptors, held.threads, held.mappings, held.resident_kb,
              ms_each);
}

class Stopwatch {
 public:
  double ms() const { return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin_).count(); }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

std::string measure(const Options& options, IdBoard& board, const Ranks& who) {
  const bool speaks = who.rank == 1 % who.world;  // no root service in its process
  Holdings early;
  const Stopwatch rounds;
  for (int round = 1; round <= options.rounds; ++round) {
    if (std::string wrong = one_round(board, who, round); !wrong.empty()) return wrong;
    if (round == std::min(5, options.rounds)) early = settled();
  }
  const double each = rounds.ms() / options.rounds;
  const Holdings after = settled();
  if (speaks) print("after 5 rounds", early, 0);
  if (speaks) print(("after " + std::to_string(options.rounds) + " rounds").c_str(), after, each);
  std::string wrong = grown(early, after);
  const Stopwatch making;
  std::vector<ncclComm_t> live;
  for (int i = 1; i <= options.live && wrong.empty(); ++i) {
    Ranks now = who;
    wrong = board.next(who, options.rounds + i, now.id);
    live.push_back(nullptr);
    if (wrong.empty()) wrong = init(now, live.back());
    if (wrong.empty()) wrong = all_reduce_once(live.back(), who, 1000);
  }
  if (speaks) print(("with " + std::to_string(options.live) + " live").c_str(), holdings(), making.ms() / options.live);
  for (ncclComm_t comm : live)
    if (comm != nullptr) wrong += must(ncclCommDestroy(comm), "ncclCommDestroy");
  const Holdings last = settled();
  if (speaks) print("after all are destroyed", last, 0);
  std::fflush(stdout);
  if (wrong.empty() && (last.descriptors > early.descriptors || last.threads > early.threads)) wrong = grown(early, last);
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, options)) {
    std::fprintf(stderr, "usage: resources [--rounds N] [--live N] [--ranks 1..32] [--transport shm|tcp]\n");
    return 2;
  }
  std::printf("%d ranks, %s; rank 1's process\n%-32s %11s %7s %8s %12s %10s\n", options.ranks, options.transport.c_str(), "",
              "descriptors", "threads", "mappings", "resident KiB", "ms each");
  std::fflush(stdout);
  IdBoard board;
  const std::string wrong = as_processes(options.ranks, transport_variables(options.transport), 600,
                                         [&](const Ranks& who) { return measure(options, board, who); });
  if (!wrong.empty()) std::printf("%s", wrong.c_str());
  return wrong.empty() ? 0 : 1;
}
