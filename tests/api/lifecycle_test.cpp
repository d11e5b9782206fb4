// SPDX-License-Identifier: Apache-2.0
// The stages of a blocking communicator: misuse of handles is answered, abort waits for nobody, signals and forks are survived.
#include <shoal/shoal.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstring>

#include "api/communicators.h"

namespace {

using testing::Ranks;

ncclResult_t all_reduce_one(ncclComm_t comm, cudaStream_t stream = nullptr) {
  static thread_local float x = 1;
  return ncclAllReduce(&x, &x, 1, ncclFloat, ncclMax, comm, stream);
}

std::string fc09(ncclComm_t comm) {
  if (std::string wrong = testing::must(ncclCommDestroy(nullptr), "destroy NULL"); !wrong.empty()) return wrong;
  if (std::string wrong = testing::must(ncclCommAbort(nullptr), "abort NULL"); !wrong.empty()) return wrong;
  if (std::string wrong = testing::expect(ncclGroupEnd(), ncclInvalidUsage, "an end without a start"); !wrong.empty())
    return wrong;
  std::vector<float> x(8, 1), y(8, -1);
  const auto good = [&] { return ncclAllReduce(x.data(), y.data(), 8, ncclFloat, ncclSum, comm, nullptr); };
  int one_time = 0;
  for (const auto& bad : std::vector<std::function<ncclResult_t()>>{
           [&] { return ncclAllReduce(nullptr, y.data(), 8, ncclFloat, ncclSum, comm, nullptr); },
           [&] { return ncclAllReduce(x.data(), y.data(), static_cast<size_t>(-3), ncclFloat, ncclSum, comm, nullptr); },
           [&] { return ncclBroadcast(x.data(), y.data(), 8, ncclFloat, 2, comm, nullptr); },
           [&] { return ncclBroadcast(x.data(), y.data(), 8, ncclFloat, -1, comm, nullptr); }}) {
    ncclGroupStart();
    ncclGroupStart();
    good();
    if (std::string wrong = testing::expect(bad(), ncclInvalidArgument, "bad call"); !wrong.empty()) return wrong;
    if (std::string wrong = testing::must(ncclGroupEnd(), "the inner end"); !wrong.empty()) return wrong;
    if (std::string wrong = testing::expect(ncclGroupEnd(), ncclInvalidArgument, "the outer end"); !wrong.empty()) return wrong;
    if (y[0] != -1) return "part of the group ran";
    ++one_time;
  }
  ncclGroupStart();
  good();
  if (std::string wrong = testing::must(ncclGroupEnd(), "a correct group"); !wrong.empty()) return wrong;
  return one_time == 4 && y[7] == 2 ? "" : "wrong sum";
}

}  // namespace

TEST_CASE("FC-09: NULL handles, an end without a start, bad calls in a group, then a good one") {
  for (const char* transport : {"threads", "shm"})
    CHECK(testing::run_ranks(transport, 2, 60, [](const Ranks& ranks) { return testing::with_comm(ranks, fc09); }) == "");
}

TEST_CASE("FC-09: destroy twice, abort then destroy, abort twice from two threads") {
  CHECK(testing::in_child({}, 60, []() -> std::string {
          for (int round = 0; round < 20; ++round) {
            ncclComm_t comms[3];
            if (std::string wrong = testing::must(ncclCommInitAll(comms, 3, nullptr), "init"); !wrong.empty()) return wrong;
            if (std::string wrong = testing::must(ncclCommDestroy(comms[0]), "destroy"); !wrong.empty()) return wrong;
            if (std::string wrong = testing::expect(ncclCommDestroy(comms[0]), ncclInvalidArgument, "again"); !wrong.empty())
              return wrong;
            if (std::string wrong = testing::expect(ncclCommAbort(comms[0]), ncclInvalidArgument, "abort then"); !wrong.empty())
              return wrong;
            if (std::string wrong = testing::must(ncclCommAbort(comms[1]), "abort"); !wrong.empty()) return wrong;
            if (std::string wrong = testing::expect(ncclCommDestroy(comms[1]), ncclInvalidArgument, "destroy then");
                !wrong.empty())
              return wrong;
            std::atomic<int> done{0};
            const auto abort = [&] { done += ncclCommAbort(comms[2]) == ncclSuccess ? 1 : 0; };
            std::thread other(abort);
            abort();
            other.join();
            if (done != 1) return std::to_string(done) + " of two aborts succeeded";
            ncclResult_t state;
            if (ncclCommGetAsyncError(comms[2], &state) != ncclInvalidArgument) return "a dead communicator has a state";
            if (all_reduce_one(comms[2]) != ncclInvalidArgument) return "a dead communicator works";
          }
          return "";
        }) == "");
}

TEST_CASE("life: after finalize only destroy, abort and the state; a second finalize is refused") {
  for (const char* transport : {"threads", "shm", "tcp"}) {
    INFO(transport);
    CHECK(testing::run_ranks(transport, 2, 60, [](const Ranks& ranks) -> std::string {
            ncclComm_t comm = nullptr, child = nullptr;
            if (std::string wrong = testing::init(ranks, comm); !wrong.empty()) return wrong;
            if (std::string wrong = testing::must(all_reduce_one(comm), "all-reduce"); !wrong.empty()) return wrong;
            if (std::string wrong = testing::must(ncclCommFinalize(comm), "finalize"); !wrong.empty()) return wrong;
            int n = 0;
            ncclRedOp_t op;
            float factor = 2;
            for (const ncclResult_t result :
                 {ncclCommFinalize(comm), all_reduce_one(comm), ncclCommCount(comm, &n),
                  ncclCommSplit(comm, 0, 0, &child, nullptr),
                  ncclRedOpCreatePreMulSum(&op, &factor, ncclFloat, ncclScalarHostImmediate, comm), ncclCommRevoke(comm, 0)})
              if (std::string wrong = testing::expect(result, ncclInvalidArgument, "after finalize"); !wrong.empty())
                return wrong;
            if (std::string wrong = testing::expect_text("comm is finalized"); !wrong.empty()) return wrong;
            ncclResult_t state = ncclInternalError;
            if (ncclCommGetAsyncError(comm, &state) != ncclSuccess || state != ncclSuccess) return "no state after finalize";
            return testing::must(ranks.rank == 0 ? ncclCommDestroy(comm) : ncclCommAbort(comm), "the end");
          }) == "");
  }
}

TEST_CASE("FC-33: abort returns within a second whatever else is stuck, in either order, and the others learn of it") {
  for (const char* transport : {"threads", "shm", "tcp"})
    for (const bool second_first : {false, true}) {
      INFO(transport << (second_first ? ", B then A" : ", A then B"));
      CHECK(testing::run_ranks(transport, 4, 60, [second_first](const Ranks& ranks) -> std::string {
              ncclComm_t a = nullptr, b = nullptr;
              if (std::string wrong = testing::init(ranks, a); !wrong.empty()) return wrong;
              if (std::string wrong = testing::must(ncclCommSplit(a, 0, 0, &b, nullptr), "split"); !wrong.empty()) return wrong;
              if (ranks.rank == 3) {  // never joins
                testing::sleep_ms(2500);
                ncclCommAbort(a);
                ncclCommAbort(b);
                return "";
              }
              if (ranks.rank != 1) {
                ncclResult_t in_b = ncclSuccess;
                std::thread other([&] { in_b = all_reduce_one(b); });
                const ncclResult_t in_a = all_reduce_one(a);
                other.join();
                ncclCommAbort(a);
                ncclCommAbort(b);
                if (std::string wrong = testing::expect(in_a, ncclRemoteError, "A"); !wrong.empty()) return wrong;
                return testing::expect(in_b, ncclRemoteError, "B");
              }
              // A call on B holds up a stream, on which a call on A waits; another thread is inside a call on A.
              cudaStream_t stream = nullptr;
              shoalStreamCreate(&stream);
              all_reduce_one(b, stream);
              float x = 1;
              ncclSend(&x, 1, ncclFloat, 3, a, stream);
              ncclResult_t inside = ncclSuccess;
              std::thread caller([&] { inside = all_reduce_one(a); });
              testing::sleep_ms(300);
              for (ncclComm_t comm : {second_first ? b : a, second_first ? a : b}) {
                const auto start = testing::Clock::now();
                if (std::string wrong = testing::must(ncclCommAbort(comm), "abort"); !wrong.empty()) return wrong;
                if (testing::seconds_since(start) > testing::kSoon)
                  return "abort took " + std::to_string(testing::seconds_since(start)) + " s";
              }
              caller.join();
              if (std::string wrong = testing::must(shoalStreamDestroy(stream), "the stream"); !wrong.empty()) return wrong;
              return testing::expect(inside, ncclInvalidUsage, "the call that was inside");
            }) == "");
    }
}

#if !defined(__SANITIZE_THREAD__)  // it objects to every handler that allocates
TEST_CASE("FC-35: a signal ends ranks that are blocked; a handler may abort") {
  for (const int signal : {SIGTERM, SIGINT}) {
    INFO("signal " << signal);
    // Rank 3 never joins. Rank 0 has no handler and rank 2's aborts; both signal themselves, as a scheduler would.
    CHECK(testing::as_processes(4, {}, 60,
                                [signal](const Ranks& ranks) -> std::string {
                                  static ncclComm_t comm = nullptr;
                                  ::signal(signal, SIG_DFL);  // the test program's own
                                  if (std::string wrong = testing::init(ranks, comm); !wrong.empty()) return wrong;
                                  if (ranks.rank == 2) {
                                    struct sigaction action = {};
                                    action.sa_handler = [](int) { ncclCommAbort(comm); };
                                    sigaction(signal, &action, nullptr);
                                  }
                                  if (ranks.rank == 3) {
                                    testing::sleep_ms(2000);
                                    ncclCommAbort(comm);
                                    return "";
                                  }
                                  if (ranks.rank != 1)
                                    std::thread([signal, rank = ranks.rank] {
                                      sigset_t all;
                                      sigfillset(&all);
                                      pthread_sigmask(SIG_SETMASK, &all, nullptr);
                                      testing::sleep_ms(500 + 100 * rank);
                                      kill(getpid(), signal);
                                    }).detach();
                                  const auto start = testing::Clock::now();
                                  const ncclResult_t result = all_reduce_one(comm);
                                  if (testing::seconds_since(start) > 2 + testing::kSoon) return "noticed late";
                                  if (ranks.rank == 0) return "the signal was swallowed";
                                  if (result == ncclSuccess) return "success without rank 3";
                                  if (ranks.rank == 1)
                                    if (std::string wrong = testing::expect_text("rank 0 ("); !wrong.empty()) return wrong;
                                  testing::sleep_ms(1000);  // the handler's turn, if the others' news came first
                                  if (ranks.rank == 1) ncclCommAbort(comm);
                                  return "";
                                },
                                {0}) == "");
  }
}
#endif

#if !defined(__SANITIZE_ADDRESS__)  // its shadow memory is address space, too
// So that just `more` descriptors can still be opened.
void limit_descriptors(int more) {
  std::vector<int> opened;
  for (int i = 0; i <= more; ++i) opened.push_back(dup(0));
  const auto most = static_cast<rlim_t>(opened.back());
  for (const int each : opened) close(each);
  const rlimit limit{most, most};
  setrlimit(RLIMIT_NOFILE, &limit);
}

TEST_CASE("FC-26: a rank that cannot go on inside init fails alone at once, and the others learn its name") {
  int failed_in_init = 0;
  for (int more = 1; more < 8; ++more) {  // with none at all it has no way to say so
    INFO(more << " descriptors");
    const std::string text = testing::as_processes(4, {}, 60, [more](const Ranks& ranks) -> std::string {
      if (ranks.rank == 2) limit_descriptors(more);
      ncclComm_t comm = nullptr;
      const auto start = testing::Clock::now();
      const ncclResult_t result = ncclCommInitRank(&comm, ranks.world, ranks.id, ranks.rank);
      if (testing::seconds_since(start) > 10) return "took " + std::to_string(testing::seconds_since(start)) + " s";
      if (result == ncclSuccess) return testing::must(ncclCommAbort(comm), "abort");
      if (comm != nullptr) return "a handle with an error";
      if (ranks.rank == 0) testing::sleep_ms(1500);  // the root service lives in this process: the others may not have come yet
      if (ranks.rank == 2) {
        if (std::string wrong = testing::expect(result, ncclSystemError, "rank 2's init"); !wrong.empty()) return wrong;
        return "failed";
      }
      if (std::string wrong = testing::expect(result, ncclRemoteError, "init"); !wrong.empty()) return wrong;
      return testing::expect_text("rank 2 (");
    });
    failed_in_init += text.empty() ? 0 : 1;
    if (!text.empty()) CHECK(text == "rank 2: failed\n");
  }
  CHECK(failed_in_init >= 3);
}
#endif

TEST_CASE("FC-10: a shorter config that ends where memory ends, wrong magic, no size, a longer one") {
  CHECK(testing::in_child({}, 60, []() -> std::string {
          const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
          void* const mapped = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
          if (mapped == MAP_FAILED || mprotect(static_cast<char*>(mapped) + page, page, PROT_NONE) != 0) return "no guard page";
          ncclUniqueId id;
          const auto with = [&](std::size_t bytes, const std::function<void(ncclConfig_t&)>& change) {
            ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
            config.size = bytes;
            change(config);
            char* const at = static_cast<char*>(mapped) + page - bytes;
            std::memset(at, 0x5a, bytes);
            std::memcpy(at, &config, std::min(bytes, sizeof config));
            ncclGetUniqueId(&id);
            ncclComm_t comm = nullptr;
            const ncclResult_t result = ncclCommInitRankConfig(&comm, 1, id, 0, reinterpret_cast<ncclConfig_t*>(at));
            if (comm != nullptr) ncclCommDestroy(comm);
            return result;
          };
          const auto as_it_is = [](ncclConfig_t&) {};
          const std::size_t full = sizeof(ncclConfig_t);
          for (const std::size_t bytes : {full, full - 24, std::size_t{40}, std::size_t{20}, full + 32})
            if (std::string wrong = testing::must(with(bytes, as_it_is), std::to_string(bytes).c_str()); !wrong.empty())
              return wrong;
          if (std::string wrong =
                  testing::must(with(full - 24, [](ncclConfig_t& c) { c.version = NCCL_VERSION(2, 18, 0); }), "2.18");
              !wrong.empty())
            return wrong;
          for (const auto& change : std::vector<std::function<void(ncclConfig_t&)>>{[](ncclConfig_t& c) { c.magic = 1; },
                                                                                    [](ncclConfig_t& c) { c.blocking = 2; },
                                                                                    [](ncclConfig_t& c) { c.size = 0; }})
            if (std::string wrong = testing::expect(with(full, change), ncclInvalidArgument, "config"); !wrong.empty())
              return wrong;
          if (std::string wrong = testing::expect_text("config.size is 0"); !wrong.empty()) return wrong;
          return "";
        }) == "");
}

TEST_CASE("life: several unique ids; each is checked") {
  CHECK(testing::in_child({}, 60, []() -> std::string {
          ncclUniqueId ids[2];
          ncclGetUniqueId(&ids[0]);
          ncclGetUniqueId(&ids[1]);
          ncclComm_t comms[3] = {};
          ncclGroupStart();
          for (int i = 0; i < 3; ++i) ncclCommInitRankScalable(&comms[i], 3, i, 2, ids, nullptr);
          if (std::string wrong = testing::must(ncclGroupEnd(), "init"); !wrong.empty()) return wrong;
          float x[3] = {1, 2, 4};
          ncclGroupStart();
          for (int i = 0; i < 3; ++i) ncclAllReduce(&x[i], &x[i], 1, ncclFloat, ncclSum, comms[i], nullptr);
          if (std::string wrong = testing::must(ncclGroupEnd(), "all-reduce"); !wrong.empty()) return wrong;
          for (ncclComm_t comm : comms) ncclCommDestroy(comm);
          if (x[0] != 7 || x[2] != 7) return "wrong sum";
          ncclComm_t comm = nullptr;
          if (ncclCommInitRankScalable(&comm, 1, 0, 0, ids, nullptr) != ncclInvalidArgument) return "no ids were accepted";
          if (ncclCommInitRankScalable(&comm, 1, 0, 2, ids, nullptr) != ncclInvalidArgument) return "more ids than ranks";
          if (ncclCommInitRankScalable(&comm, 1, 0, 1, nullptr, nullptr) != ncclInvalidArgument) return "NULL was accepted";
          std::memset(&ids[1], 7, sizeof ids[1]);
          if (ncclCommInitRankScalable(&comm, 2, 0, 2, ids, nullptr) != ncclInvalidArgument) return "a broken id was accepted";
          return "";
        }) == "");
}

TEST_CASE("life: a reduction may be destroyed before the end of the group that uses it; a built-in one never") {
  CHECK(testing::in_child({}, 60, []() -> std::string {
          ncclComm_t comms[2];
          if (std::string wrong = testing::must(ncclCommInitAll(comms, 2, nullptr), "init"); !wrong.empty()) return wrong;
          float x[2] = {3, 5};
          ncclGroupStart();
          for (int i = 0; i < 2; ++i) {
            float factor = i == 0 ? 2 : 10;
            ncclRedOp_t op;
            ncclRedOpCreatePreMulSum(&op, &factor, ncclFloat, ncclScalarHostImmediate, comms[i]);
            ncclAllReduce(&x[i], &x[i], 1, ncclFloat, op, comms[i], nullptr);
            factor = -1;
            if (std::string wrong = testing::must(ncclRedOpDestroy(op, comms[i]), "destroy"); !wrong.empty()) return wrong;
          }
          if (std::string wrong = testing::must(ncclGroupEnd(), "group"); !wrong.empty()) return wrong;
          if (x[0] != 56 || x[1] != 56) return "wrong sum";
          if (std::string wrong = testing::expect(ncclRedOpDestroy(ncclAvg, comms[0]), ncclInvalidArgument, "built in");
              !wrong.empty())
            return wrong;
          for (ncclComm_t comm : comms) ncclCommDestroy(comm);
          return "";
        }) == "");
}

#if !defined(__SANITIZE_THREAD__)  // it cannot follow a child of a process with threads that starts threads of its own
TEST_CASE("life: a forked child's inherited communicator is refused; its own, and its parent's, work") {
  CHECK(testing::in_child({}, 60, []() -> std::string {
          ncclComm_t comms[2];
          if (std::string wrong = testing::must(ncclCommInitAll(comms, 2, nullptr), "init"); !wrong.empty()) return wrong;
          const std::string in_fork = testing::in_child({}, 30, [&]() -> std::string {
            for (const ncclResult_t result : {all_reduce_one(comms[0]), ncclCommDestroy(comms[0]), ncclCommAbort(comms[1])})
              if (std::string wrong = testing::expect(result, ncclInvalidUsage, "inherited"); !wrong.empty()) return wrong;
            if (std::string wrong = testing::expect_text("before this process was forked off"); !wrong.empty()) return wrong;
            ncclComm_t own[2];
            if (std::string wrong = testing::must(ncclCommInitAll(own, 2, nullptr), "init of its own"); !wrong.empty())
              return wrong;
            for (ncclComm_t comm : own) ncclCommDestroy(comm);
            return "";
          });
          if (!in_fork.empty()) return in_fork;
          float x[2] = {1, 2};
          ncclGroupStart();
          for (int i = 0; i < 2; ++i) ncclAllReduce(&x[i], &x[i], 1, ncclFloat, ncclSum, comms[i], nullptr);
          if (std::string wrong = testing::must(ncclGroupEnd(), "the parent's"); !wrong.empty()) return wrong;
          for (ncclComm_t comm : comms) ncclCommDestroy(comm);
          return x[0] == 3 ? "" : "wrong sum";
        }) == "");
}
#endif
