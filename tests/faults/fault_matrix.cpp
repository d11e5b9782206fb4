// SPDX-License-Identifier: Apache-2.0
// fault_matrix [--quick [FAULT [WAY]]]: every fault in every phase over every transport, and in each way that ranks of a host
// have to reach each other's memory, as one table. A cell says how many milliseconds after the fault the last of the other ranks
// had an error that names the culprit; anything else fails the program. FAULT: a part of the faults' names; WAY: the only column.
// SHOAL_TEST_TRANSPORT=verbs puts verbs in tcp's place.
#include <nccl.h>
#include <sched.h>
#include <shoal/shoal.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "support/patience.h"
#include "support/ranks.h"
#include "support/shared.h"

namespace {

using testing::Ranks;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr int kWorld = 4;
const auto kDeadline = testing::patience(600ms);
// Later is LATE. The whole table, made on a machine that has nothing else to do, fails by it; a test (--quick) only says so.
constexpr int kDeath_ms = 2000, kBound_ms = 6000;
constexpr std::size_t kCount = 30'000;

enum class Fault { killed, exits, stopped, cut_off, never_arrives, absent, leaves, aborts, other_call };
struct FaultRow {
  Fault fault;
  const char* name;
  int culprit;
};
constexpr FaultRow kFaults[] = {
    {Fault::killed, "killed (SIGKILL)", 2},
    {Fault::killed, "root killed", 0},
    {Fault::exits, "exits without goodbye", 2},
    {Fault::stopped, "stopped (SIGSTOP)", 2},
    {Fault::stopped, "root stopped", 0},
    {Fault::cut_off, "cut off (link down)", 2},
    {Fault::never_arrives, "never arrives", 2},
    {Fault::absent, "makes no more calls", 2},
    {Fault::leaves, "leaves in order, too early", 2},
    {Fault::aborts, "aborts", 2},
    {Fault::other_call, "makes another call", 2},
};

constexpr const char* kPhases[] = {"init",           "all_reduce",   "reduce",   "broadcast", "all_gather",
                                   "reduce_scatter", "all_to_all",   "gather",   "scatter",   "barrier",
                                   "all_gather_v",   "all_to_all_v", "send_recv"};
constexpr const char* kQuickPhases[] = {"init", "all_reduce", "broadcast", "all_to_all_v", "send_recv"};

// A column of the table.
struct Way {
  const char* name;
  const char* transport;
  testing::Variables variables{};
  bool shared_memory = false;  // arrays are of ncclMemAlloc
};
const Way kWays[] = {{"threads", "threads"},
                     {"shm", "shm", {{"SHOAL_PULL_BYTES", "0"}}},
                     {"pulled", "shm", {{"SHOAL_PULL_BYTES", "1"}}},
                     {"mapped", "shm", {}, true},
                     {"tcp", "tcp"},
                     {"ucx", "ucx"}};
constexpr std::size_t kColumns = std::size(kWays);

// What the ranks of a cell tell the program; in memory that all processes share.
struct Cell {
  std::atomic<std::int64_t> fault_ns;
  std::atomic<pid_t> culprit_pid;
  std::atomic<int> survivors_done;
  struct Rank {
    std::atomic<std::int64_t> ended_ns;
    int result;
    char text[700];
  };
  Rank ranks[kWorld];
};

std::int64_t now_ns() { return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count(); }

class Memory {
 public:
  explicit Memory(bool shared) {
    void* memory = nullptr;
    if (shared && ncclMemAlloc(&memory, 2 * kElements * sizeof(float)) == ncclSuccess) {
      in = static_cast<float*>(memory);
      out = in + kElements;
    }
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

 private:
  static constexpr std::size_t kElements = kWorld * kCount;
  std::vector<float> own_ = std::vector<float>(2 * kElements, 1);

 public:
  float *in = own_.data(), *out = in + kElements;
  std::vector<std::size_t> counts = std::vector<std::size_t>(kWorld, kCount);
};

ncclResult_t send_recv(Memory& m, ncclComm_t comm, int rank) {
  ncclGroupStart();
  const ncclResult_t sent = ncclSend(m.in, kCount, ncclFloat, (rank + 1) % kWorld, comm, nullptr);
  const ncclResult_t received = ncclRecv(m.out, kCount, ncclFloat, (rank + kWorld - 1) % kWorld, comm, nullptr);
  const ncclResult_t ended = ncclGroupEnd();
  return sent != ncclSuccess ? sent : received != ncclSuccess ? received : ended;
}

ncclResult_t call(const std::string& phase, ncclComm_t comm, int rank, Memory& m) {
  float* const in = m.in;
  float* const out = m.out;
  if (phase == "reduce") return ncclReduce(in, out, kCount, ncclFloat, ncclMax, 1, comm, nullptr);
  if (phase == "broadcast") return ncclBroadcast(in, out, kCount, ncclFloat, 1, comm, nullptr);
  if (phase == "all_gather") return ncclAllGather(in, out, kCount, ncclFloat, comm, nullptr);
  if (phase == "reduce_scatter") return ncclReduceScatter(in, out, kCount, ncclFloat, ncclMax, comm, nullptr);
  if (phase == "all_to_all") return ncclAlltoAll(in, out, kCount, ncclFloat, comm, nullptr);
  if (phase == "gather") return ncclGather(in, out, kCount, ncclFloat, 1, comm, nullptr);
  if (phase == "scatter") return ncclScatter(in, out, kCount, ncclFloat, 1, comm, nullptr);
  if (phase == "barrier") return shoalBarrier(comm, nullptr);
  if (phase == "all_gather_v") return shoalAllGatherV(in, kCount, out, m.counts.data(), nullptr, ncclFloat, comm, nullptr);
  if (phase == "all_to_all_v")
    return shoalAllToAllV(in, m.counts.data(), nullptr, out, m.counts.data(), nullptr, ncclFloat, comm, nullptr);
  if (phase == "send_recv") return send_recv(m, comm, rank);
  return ncclAllReduce(in, out, kCount, ncclFloat, ncclMax, comm, nullptr);
}

void mark(Cell& cell) { cell.fault_ns.store(now_ns()); }

void sleep_until_survivors_are_done(Cell& cell) {
  const auto until = Clock::now() + 20s;
  while (cell.survivors_done.load() < kWorld - 1 && Clock::now() < until) std::this_thread::sleep_for(5ms);
}

// The culprit's part once it is in; it may not return.
void misbehave(Fault fault, const std::string& phase, ncclComm_t comm, Cell& cell, int rank, Memory& m,
               const std::function<void()>& cut) {
  switch (fault) {
    case Fault::exits: mark(cell); _exit(0);
    case Fault::killed:
    case Fault::stopped:
      std::thread([fault, &cell] {
        std::this_thread::sleep_for(30ms);
        mark(cell);
        kill(getpid(), fault == Fault::killed ? SIGKILL : SIGSTOP);
      }).detach();
      while (call(phase, comm, rank, m) == ncclSuccess) {
      }
      break;
    case Fault::cut_off:
      mark(cell);
      cut();
      sleep_until_survivors_are_done(cell);
      break;
    case Fault::absent:
    case Fault::never_arrives:
      mark(cell);
      sleep_until_survivors_are_done(cell);
      break;
    case Fault::leaves:
      mark(cell);
      ncclCommDestroy(comm);
      return;
    case Fault::aborts:
      mark(cell);
      ncclCommAbort(comm);
      return;
    case Fault::other_call:
      mark(cell);
      (void)ncclAllReduce(m.in, m.out, 3, ncclInt8, ncclProd, comm, nullptr);
      sleep_until_survivors_are_done(cell);
      break;
  }
  ncclCommAbort(comm);
}

// Init itself goes wrong: the culprit comes early or never, another rank comes late.
ncclResult_t start(const FaultRow& row, const std::string& phase, const Ranks& ranks, Cell& cell, ncclComm_t& comm) {
  const bool culprit = ranks.rank == row.culprit;
  if (phase == "init" && culprit && row.fault == Fault::never_arrives) {
    mark(cell);
    sleep_until_survivors_are_done(cell);
    return ncclSystemError;
  }
  if (phase == "init" && culprit)
    std::thread([&row, &cell] {
      std::this_thread::sleep_for(150ms);
      mark(cell);
      if (row.fault == Fault::exits) _exit(0);
      kill(getpid(), row.fault == Fault::killed ? SIGKILL : SIGSTOP);
    }).detach();
  if (phase == "init" && ranks.rank == 3) std::this_thread::sleep_for(400ms);
  return ncclCommInitRank(&comm, ranks.world, ranks.id, ranks.rank);
}

std::string body(const FaultRow& row, const std::string& phase, const Ranks& ranks, Cell& cell, bool shared_memory,
                 const std::function<void()>& cut = nullptr) {
  const bool culprit = ranks.rank == row.culprit;
  if (culprit) cell.culprit_pid.store(getpid());
  ncclComm_t comm = nullptr;
  Memory memory(shared_memory);
  ncclResult_t result = start(row, phase, ranks, cell, comm);
  if (culprit && result != ncclSuccess) return "";
  for (int warm = 0; phase != "init" && warm < 5 && result == ncclSuccess; ++warm) result = call(phase, comm, ranks.rank, memory);
  if (culprit && result == ncclSuccess) {
    misbehave(phase == "init" ? Fault::absent : row.fault, phase, comm, cell, ranks.rank, memory, cut);
    return "";
  }
  while (result == ncclSuccess) {
    result = call(phase, comm, ranks.rank, memory);
    // A rank that had all it needed hears of it while it computes.
    if (result == ncclSuccess) (void)ncclCommGetAsyncError(comm, &result);
  }
  Cell::Rank& mine = cell.ranks[ranks.rank];
  mine.result = result;
  std::snprintf(mine.text, sizeof mine.text, "%s", ncclGetLastError(comm));
  mine.ended_ns.store(now_ns());
  std::this_thread::sleep_for(30ms);  // the others must hear of the fault, not of this rank's abort
  ncclCommAbort(comm);
  // Whoever is last ends the culprit, which may be stopped. Nobody goes before: the root service lives in a rank's process.
  const bool last = cell.survivors_done.fetch_add(1) + 1 == kWorld - 1;
  const bool processes = cell.culprit_pid.load() != getpid();
  if (last && processes && (row.fault == Fault::stopped || row.fault == Fault::cut_off)) kill(cell.culprit_pid.load(), SIGKILL);
  sleep_until_survivors_are_done(cell);
  return "";
}

// ---- namespaces: ranks 0, 1 and 3 in one, rank 2 in another, joined by a pair of virtual interfaces.

int shell(const char* command) { return std::system(command); }

bool make_namespaces() { return unshare(CLONE_NEWNET) == 0 && shell("ip link set lo up") == 0; }

// In the child that is to be rank 2: its own namespace, one end of the pair moved into it by the parent's side.
std::string cut_off_cell(const FaultRow& row, const std::string& phase, Cell& cell) {
  const testing::Variables variables = {{"NCCL_SHM_DISABLE", "1"}, {"NCCL_SOCKET_IFNAME", "shl"}};
  // On a busy machine the kernel sees a wire some time after it is there.
  constexpr const char* kUntilWired =
      "for i in $(seq 500); do ip -o link show shl0 | grep -q 'state UP' && exit 0; sleep 0.02; done; exit 1";
  return testing::in_child(variables, 60, [&]() -> std::string {
    if (!make_namespaces()) return "SKIP";
    if (shell("ip link add shl0 type veth peer name shl1 && ip addr add 10.77.0.1/24 dev shl0 && ip link set shl0 up") != 0)
      return "SKIP";
    int ready[2], moved[2], made[2];
    if (pipe(ready) != 0 || pipe(moved) != 0 || pipe(made) != 0) return "pipe";
    const testing::Shared<ncclUniqueId> id;
    char byte = 0;
    const auto say = [&](int end) { return write(end, "x", 1) == 1; };
    const auto hear = [&](int end) { return read(end, &byte, 1) == 1; };
    std::vector<pid_t> children;
    for (const int rank : {2, 0, 1, 3}) {
      const pid_t pid = fork();
      if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (rank == 2) {
          if (unshare(CLONE_NEWNET) != 0 || !say(ready[1]) || !hear(moved[0])) _exit(3);
          if (shell("ip link set lo up; ip addr add 10.77.0.2/24 dev shl1 && ip link set shl1 up") != 0) _exit(3);
          if (!say(ready[1])) _exit(3);
        }
        if (rank == 0) {
          const bool there = shell(kUntilWired) == 0 && ncclGetUniqueId(&*id) == ncclSuccess;
          if (!there) std::fprintf(stderr, "rank 0: %s\n", ncclGetLastError(nullptr));
          for (int i = 0; i < kWorld - 1; ++i)  // if there is none, they fail by themselves
            if (!say(made[1])) _exit(3);
          if (!there) _exit(3);
        } else if (!hear(made[0])) {
          _exit(3);
        }
        body(row, phase, {kWorld, rank, *id}, cell, false, [] { (void)shell("ip link set shl1 down"); });
        _exit(0);
      }
      children.push_back(pid);
      if (rank != 2) continue;
      const std::string move = "ip link set shl1 netns " + std::to_string(pid);
      if (!hear(ready[0]) || shell(move.c_str()) != 0 || !say(moved[1]) || !hear(ready[0])) return "SKIP";
    }
    for (const pid_t child : children) waitpid(child, nullptr, 0);
    return "";
  });
}

// ---- the table

bool applies(const FaultRow& row, const std::string& phase, const Way& way) {
  const std::string transport = way.transport;
  const bool threads = transport == "threads", names_its_way = transport != way.name;
  const bool has_ways = phase != "init" && phase != "barrier" && phase != "send_recv" && !phase.ends_with("_v");
  if (names_its_way && !has_ways) return false;
  switch (row.fault) {
    case Fault::never_arrives: return phase == "init";
    case Fault::killed:
    case Fault::exits:
    case Fault::stopped: return !threads && !(phase == "init" && row.culprit == 0);
    case Fault::cut_off: return transport == "tcp" && phase != "init";
    default: return phase != "init";
  }
}

std::string verdict_of(const FaultRow& row, const std::string& phase, const Cell& cell, bool judges_time, bool& good) {
  std::int64_t last = 0;
  const std::string name = "rank " + std::to_string(row.culprit);
  for (int rank = 0; rank < kWorld; ++rank) {
    if (rank == row.culprit) continue;
    const Cell::Rank& one = cell.ranks[rank];
    const std::string who = "r" + std::to_string(rank);
    if (one.ended_ns.load() == 0) return who + " HUNG";
    const std::string text = one.text;
    // Who never came has no host yet; and within the first line the collective is named where there was one.
    const bool named =
        text.find(name) != std::string::npos || text.find("missing: " + std::to_string(row.culprit)) != std::string::npos;
    if (!named) {
      std::fprintf(stderr, "%s, %s, rank %d: %s\n", row.name, phase.c_str(), rank, one.text);
      return who + " UNNAMED";
    }
    last = std::max(last, one.ended_ns.load());
  }
  const auto ms = (last - cell.fault_ns.load()) / 1'000'000;
  const bool dies = row.fault == Fault::killed || row.fault == Fault::exits;
  const bool in_time = ms <= (dies ? kDeath_ms : kBound_ms);
  good = in_time || !judges_time;
  return std::to_string(ms) + " ms" + (in_time ? "" : " LATE");
}

testing::Variables variables_of(const Way& way) {
  testing::Variables all = testing::transport_variables(way.transport);
  all.insert(all.end(), way.variables.begin(), way.variables.end());
  return all;
}

std::string run_cell(const FaultRow& row, const std::string& phase, const Way& way, bool judges_time, bool& good) {
  const testing::Shared<Cell> shared;
  Cell& cell = *shared;
  std::string trouble;
  if (row.fault == Fault::cut_off)
    trouble = cut_off_cell(row, phase, cell);
  else if (std::string(way.transport) == "threads")
    trouble = testing::run_ranks("threads", kWorld, 40, [&](const Ranks& ranks) { return body(row, phase, ranks, cell, false); });
  else
    trouble = testing::as_processes(kWorld, variables_of(way), 40,
                                    [&](const Ranks& ranks) { return body(row, phase, ranks, cell, way.shared_memory); },
                                    {row.culprit});
  std::string text;
  if (trouble.find("SKIP") != std::string::npos) {
    text = "skipped";
    good = true;
  } else if (!trouble.empty()) {
    std::fprintf(stderr, "%s, %s, %s: %s\n", row.name, phase.c_str(), way.name, trouble.c_str());
    text = "TROUBLE";
  } else {
    text = verdict_of(row, phase, cell, judges_time, good);
  }
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  const bool quick = argc > 1 && std::strcmp(argv[1], "--quick") == 0;
  const std::string only = argc > 2 ? argv[2] : "", only_way = argc > 3 ? argv[3] : "";
  setenv("SHOAL_TIMEOUT_MS", std::to_string(kDeadline.count()).c_str(), 1);
  std::vector<std::string> phases(std::begin(kPhases), std::end(kPhases));
  if (quick) phases.assign(std::begin(kQuickPhases), std::end(kQuickPhases));
  std::printf("%d ranks, deadline %d ms; milliseconds from the fault until the last rank had an error that names the culprit\n\n",
              kWorld, static_cast<int>(kDeadline.count()));
  std::printf("%-27s %-15s", "fault", "phase");
  for (const Way& way : kWays) std::printf(" %12s", way.name);
  std::printf("\n");
  std::fflush(stdout);
  int cells = 0, bad = 0;
  for (const FaultRow& row : kFaults)
    for (const std::string& phase : phases) {
      if (!only.empty() && std::string(row.name).find(only) == std::string::npos) continue;
      std::string texts[kColumns];
      int used = 0;
      for (std::size_t t = 0; t < kColumns; ++t) {
        texts[t] = "-";
        if (!applies(row, phase, kWays[t]) || (!only_way.empty() && only_way != kWays[t].name)) continue;
        bool good = false;
        texts[t] = run_cell(row, phase, kWays[t], !quick, good);
        ++used;
        bad += good ? 0 : 1;
      }
      cells += used;
      if (used == 0) continue;
      std::printf("%-27s %-15s", row.name, phase.c_str());
      for (const std::string& text : texts) std::printf(" %12s", text.c_str());
      std::printf("\n");
      std::fflush(stdout);
    }
  std::printf("\n%d cells, %d not as they should be\n", cells, bad);
  return bad == 0 ? 0 : 1;
}
