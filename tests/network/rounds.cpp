// SPDX-License-Identifier: Apache-2.0
#include "network/rounds.h"

#include <malloc.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

namespace testing {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kPatience = std::chrono::seconds(60);  // never reached by a test that passes

int entries(const char* folder) {
  const std::filesystem::directory_iterator all(folder);
  return static_cast<int>(std::distance(begin(all), end(all)));
}

}  // namespace

struct IdBoard::Page {
  std::atomic<int> round{0};  // released by rank 0 after the id, acquired by the others before it
  ncclUniqueId id{};
  std::atomic<int> taken{0};  // ranks that have copied the id of this round
  std::atomic<std::int64_t> notes[64]{};
};

IdBoard::IdBoard() : page_(std::make_unique<Shared<Page>>()) {}

IdBoard::~IdBoard() = default;

std::string IdBoard::next(const Ranks& who, int round, ncclUniqueId& id) {
  const auto end = Clock::now() + kPatience;
  const auto wait = [&](auto&& done) {
    while (!done())
      if (Clock::now() > end)
        return false;
      else
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    return true;
  };
  if (who.rank != 0) {
    if (!wait([&] { return (*page_)->round.load(std::memory_order_acquire) == round; }))
      return "no id for round " + std::to_string(round);
    id = (*page_)->id;
    (*page_)->taken.fetch_add(1, std::memory_order_release);
    return "";
  }
  if (std::string wrong = must(ncclGetUniqueId(&id), "ncclGetUniqueId"); !wrong.empty()) return wrong;
  if (round > 1 && !wait([&] { return (*page_)->taken.load(std::memory_order_acquire) == who.world - 1; }))
    return "not all took the id of round " + std::to_string(round - 1);
  (*page_)->taken.store(0, std::memory_order_relaxed);
  (*page_)->id = id;
  (*page_)->round.store(round, std::memory_order_release);
  return "";
}

void IdBoard::note(int rank, std::int64_t value) { (*page_)->notes[rank].store(value); }
std::int64_t IdBoard::note_of(int rank) const { return (*page_)->notes[rank].load(); }

std::string all_reduce_once(ncclComm_t comm, const Ranks& who, std::size_t count) {
  std::vector<float> data(count), right(count);
  for (std::size_t i = 0; i < count; ++i) {
    data[i] = static_cast<float>(i % 97) + static_cast<float>(who.rank);
    right[i] = static_cast<float>(who.world) * static_cast<float>(i % 97) + static_cast<float>(who.world * (who.world - 1) / 2);
  }
  if (std::string wrong =
          must(ncclAllReduce(data.data(), data.data(), count, ncclFloat32, ncclSum, comm, nullptr), "ncclAllReduce");
      !wrong.empty())
    return wrong;
  return data == right ? "" : "wrong sums";
}

std::string one_round(IdBoard& board, const Ranks& who, int round, std::size_t count) {
  Ranks now = who;
  if (std::string wrong = board.next(who, round, now.id); !wrong.empty()) return wrong;
  const std::string wrong = with_comm(now, [&](ncclComm_t comm) { return all_reduce_once(comm, who, count); });
  return wrong.empty() ? "" : "round " + std::to_string(round) + ": " + wrong;
}

Holdings holdings() {
  Holdings held{entries("/proc/self/fd"), entries("/proc/self/task"), 0, 0};
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) ++held.mappings;
  std::ifstream statm("/proc/self/statm");
  long size = 0, resident = 0;
  statm >> size >> resident;
  held.resident_kb = resident * (sysconf(_SC_PAGESIZE) / 1024);
  return held;
}

Holdings settled() {
  constexpr int kQuiet = 20;  // looks without a change
  malloc_trim(0);  // what malloc keeps of freed memory, megabytes by the chance of threads and arenas, is nobody's leak
  Holdings now = holdings();
  for (int quiet = 0, looks = 0; quiet < kQuiet && looks < 1000; ++looks) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const Holdings again = holdings();
    const bool same = again.descriptors == now.descriptors && again.threads == now.threads && again.mappings == now.mappings;
    quiet = same ? quiet + 1 : 0;
    now = again;
  }
  return now;
}

std::string grown(const Holdings& before, const Holdings& now, long nothing_kb) {
  std::string text;
  const auto compare = [&](const char* what, long from, long to, long nothing) {
    if (to > from + nothing)
      text += std::string(what) + " grew from " + std::to_string(from) + " to " + std::to_string(to) + "; ";
  };
  compare("descriptors", before.descriptors, now.descriptors, 0);
  compare("threads", before.threads, now.threads, 0);
  // A sanitizer keeps what is freed, to catch who still uses it: its memory tells nothing of ours.
  if (kSanitized) return text;
  compare("mappings", before.mappings, now.mappings, 16);  // malloc may take some arenas more for a process's threads
  compare("resident KiB", before.resident_kb, now.resident_kb, nothing_kb);
  return text;
}

}  // namespace testing
