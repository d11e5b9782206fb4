// SPDX-License-Identifier: Apache-2.0
// Collectives whose ranks read each other's memory: all of them, in place and not, at odd offsets;
// where the system forbids it to one rank; and where a rank gives a buffer that is none.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <thread>

#include "api/checked_calls.h"

namespace {

using namespace testing;

std::string all_kinds(const Ranks& ranks, ncclComm_t comm, std::initializer_list<std::size_t> lengths) {
  std::string wrong;
  for (int round = 0; round < 2; ++round)
    for (int kind = 0; kind < kKinds; ++kind)
      for (const bool in_place : {false, true})
        for (const std::size_t n : lengths)
          if (wrong.empty()) wrong = call(static_cast<Kind>(kind), n, (kind + 1) % ranks.world, in_place, false, ranks, comm);
  return wrong;
}

// From now on this process may not read others' memory.
bool forbid_reading() {
  std::array<sock_filter, 4> program = {{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                                         BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
                                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)}};
  const sock_fprog filter{program.size(), program.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

}  // namespace

TEST_CASE("Pulled: every collective, in place and not, from any root, from any length on") {
  for (const char* transport : {"threads", "shm"})
    for (const int world : {1, 2, 3, 4, 5})
      for (const char* from : {"1", "40K", "0"}) {
        CAPTURE(transport, world, from);
        CHECK(run(transport, world, {{"SHOAL_PULL_BYTES", from}}, [](const Ranks& ranks, ncclComm_t comm) {
                return all_kinds(ranks, comm, {1, 13, 20'011});
              }) == "");
      }
}

TEST_CASE("Pulled: blocks of many pieces") {
  CHECK(run("shm", 3, {{"SHOAL_PULL_BYTES", "1"}},
            [](const Ranks& ranks, ncclComm_t comm) { return all_kinds(ranks, comm, {1'200'001}); }) == "");
}

TEST_CASE("Pulled: left to the library, call by call, with one rank late now and then") {
  for (const char* transport : {"threads", "shm"})
    for (const int world : {2, 3}) {
      CAPTURE(transport, world);
      CHECK(run(transport, world, {}, [](const Ranks& ranks, ncclComm_t comm) -> std::string {
              std::string wrong;
              for (int round = 0; round < 60 && wrong.empty(); ++round) {
                if (round % 7 == ranks.rank) std::this_thread::sleep_for(std::chrono::milliseconds(1));
                const auto kind = static_cast<Kind>(round % 3 == 0 ? 0 : round % kKinds);
                wrong = call(kind, 40'011, round % ranks.world, round % 5 == 0, false, ranks, comm);
              }
              return wrong;
            }) == "");
    }
}

TEST_CASE("Pulled: where the system forbids it to one rank, all take another way") {
  for (const int forbidden : {0, 1, 2}) {
    CAPTURE(forbidden);
    CHECK(run("shm", 3, {{"SHOAL_PULL_BYTES", "1"}}, [&](const Ranks& ranks, ncclComm_t comm) -> std::string {
            if (ranks.rank == forbidden && !forbid_reading()) return "the filter was not taken";
            return all_kinds(ranks, comm, {1, 20'011});
          }) == "");
  }
}

TEST_CASE("Pulled: a buffer that is none is its rank's fault, and everybody hears of it") {
  Variables variables = transport_variables("shm");
  variables.emplace_back("SHOAL_PULL_BYTES", "1");
  CHECK(as_processes(3, variables, 120, [](const Ranks& ranks) -> std::string {
          ncclComm_t comm = nullptr;
          if (std::string wrong = init(ranks, comm); !wrong.empty()) return wrong;
          if (std::string wrong = all_kinds(ranks, comm, {100}); !wrong.empty()) return wrong;
          constexpr std::size_t kBytes = 1 << 20;
          void* const none = mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
          std::vector<char> out(kBytes);
          void* const buffer = ranks.rank == 1 ? none : out.data();
          const ncclResult_t result = ncclBroadcast(buffer, buffer, kBytes, ncclInt8, 1, comm, nullptr);
          const std::string text = ncclGetLastError(comm);
          munmap(none, kBytes);
          if (std::string wrong = must(ncclCommAbort(comm), "abort"); !wrong.empty()) return wrong;
          if (result == ncclSuccess) return "it was taken";
          return text.find("rank 1") != std::string::npos ? "" : text;
        }) == "");
}
