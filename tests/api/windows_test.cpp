// SPDX-License-Identifier: Apache-2.0
// Windows: registered by all ranks together. What one rank does differently is an error of all, and the communicator goes on.
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <memory>

#include "support/ranks.h"

namespace {

using testing::must;
using testing::Ranks;

constexpr std::size_t kSize = 3 * 4096;

struct Freed {
  void operator()(void* block) const { ncclMemFree(block); }
};
using Block = std::unique_ptr<void, Freed>;

Block block() {
  void* made = nullptr;
  return Block(ncclMemAlloc(&made, kSize) == ncclSuccess ? made : nullptr);
}

std::string refused(ncclResult_t result, ncclResult_t code, const std::string& text) {
  const std::string said = ncclGetLastError(nullptr);
  if (result == code && said.find(text) != std::string::npos) return "";
  return "expected code " + std::to_string(code) + " and \"" + text + "\", got " + std::to_string(result) + ": " + said;
}

std::string still_works(ncclComm_t comm, int world) {
  std::int32_t one = 1;
  if (std::string wrong = must(ncclAllReduce(&one, &one, 1, ncclInt32, ncclSum, comm, nullptr), "all-reduce afterwards");
      !wrong.empty())
    return wrong;
  return one == world ? "" : "wrong sum afterwards";
}

using Body = std::function<std::string(const Ranks&, ncclComm_t, void* memory)>;

std::string with_block(const char* transport, int world, const Body& body) {
  return testing::run_ranks(transport, world, 60, [&](const Ranks& ranks) {
    return testing::with_comm(ranks, [&](ncclComm_t comm) -> std::string {
      const Block memory = block();
      if (std::string wrong = body(ranks, comm, memory.get()); !wrong.empty()) return wrong;
      return still_works(comm, ranks.world);
    });
  });
}

}  // namespace

TEST_CASE("windows: all ranks register and deregister") {
  for (const char* transport : {"threads", "shm", "tcp"})
    for (const int world : {1, 3}) {
      INFO(transport << ", " << world << " ranks");
      CHECK(with_block(transport, world, [](const Ranks&, ncclComm_t comm, void* memory) -> std::string {
              ncclWindow_t symmetric = nullptr, plain = nullptr;
              if (std::string wrong =
                      must(ncclCommWindowRegister(comm, memory, kSize, &symmetric, NCCL_WIN_COLL_SYMMETRIC), "symmetric");
                  !wrong.empty())
                return wrong;
              if (std::string wrong =
                      must(ncclCommWindowRegister(comm, static_cast<char*>(memory) + 8, 16, &plain, NCCL_WIN_DEFAULT), "plain");
                  !wrong.empty())
                return wrong;
              if (symmetric == nullptr || plain == nullptr || symmetric == plain) return "windows are not distinct";
              if (ncclCommDeregister(comm, plain) != ncclInvalidUsage) return "a window was taken for a buffer";
              if (std::string wrong = must(ncclCommWindowDeregister(comm, symmetric), "deregister"); !wrong.empty()) return wrong;
              if (ncclCommWindowDeregister(comm, symmetric) != ncclInvalidUsage) return "a window was deregistered twice";
              return must(ncclCommWindowDeregister(comm, nullptr), "deregister NULL");  // `plain` goes with the communicator
            }) == "");
    }
}

TEST_CASE("windows: in a group they are there when it ends, beside collectives") {
  for (const char* transport : {"threads", "shm"})
    CHECK(with_block(transport, 3, [](const Ranks& ranks, ncclComm_t comm, void* memory) -> std::string {
            ncclWindow_t first = nullptr, second = nullptr;
            std::int64_t sum = ranks.rank;
            ncclGroupStart();
            ncclResult_t a = ncclCommWindowRegister(comm, memory, 4096, &first, NCCL_WIN_COLL_SYMMETRIC);
            ncclResult_t b = ncclAllReduce(&sum, &sum, 1, ncclInt64, ncclSum, comm, nullptr);
            ncclResult_t c = ncclCommWindowRegister(comm, memory, kSize, &second, NCCL_WIN_DEFAULT);
            if (a != ncclSuccess || b != ncclSuccess || c != ncclSuccess) return "a call in the group failed";
            if (first != nullptr || second != nullptr || sum != ranks.rank) return "something ran before the end";
            if (std::string wrong = must(ncclGroupEnd(), "group"); !wrong.empty()) return wrong;
            return first != nullptr && second != nullptr && first != second && sum == 3 ? "" : "not all of it was done";
          }) == "");
}

TEST_CASE("windows: one thread registers for all its ranks") {
  CHECK(testing::in_child({}, 60, []() -> std::string {
          constexpr int kWorld = 3;
          std::array<ncclComm_t, kWorld> comms{};
          if (std::string wrong = must(ncclCommInitAll(comms.data(), kWorld, nullptr), "init"); !wrong.empty()) return wrong;
          std::array<ncclWindow_t, kWorld> windows{};
          const Block memory = block();
          ncclGroupStart();
          for (std::size_t r = 0; r < kWorld; ++r)
            ncclCommWindowRegister(comms[r], static_cast<char*>(memory.get()) + r * 4096, 4096, &windows[r],
                                   NCCL_WIN_COLL_SYMMETRIC);
          if (std::string wrong = must(ncclGroupEnd(), "group"); !wrong.empty()) return wrong;
          for (std::size_t r = 0; r < kWorld; ++r)
            if (std::string wrong = must(ncclCommWindowDeregister(comms[r], windows[r]), "deregister"); !wrong.empty())
              return wrong;
          for (ncclComm_t comm : comms)
            if (std::string wrong = must(ncclCommDestroy(comm), "destroy"); !wrong.empty()) return wrong;
          return "";
        }) == "");
}

TEST_CASE("windows: a size or a flag that differs is an error on all ranks, which names it") {
  for (const char* transport : {"shm", "tcp"}) {
    CHECK(with_block(transport, 3, [](const Ranks& ranks, ncclComm_t comm, void* memory) {
            ncclWindow_t window = nullptr;
            return refused(ncclCommWindowRegister(comm, memory, ranks.rank == 2 ? 8192 : 4096, &window, NCCL_WIN_COLL_SYMMETRIC),
                           ncclInvalidUsage, "rank 2 registers 8192 bytes with winFlags 1, rank 0 4096 bytes with winFlags 1");
          }) == "");
    CHECK(with_block(transport, 2, [](const Ranks& ranks, ncclComm_t comm, void* memory) {
            ncclWindow_t window = nullptr;
            ncclGroupStart();
            const ncclResult_t in_group = ncclCommWindowRegister(comm, memory, 4096, &window, ranks.rank);
            std::string wrong = refused(ncclGroupEnd(), ncclInvalidUsage,
                                        "rank 1 registers 4096 bytes with winFlags 1, rank 0 4096 bytes with winFlags 0");
            return in_group == ncclSuccess && window == nullptr ? wrong : "something was registered, or refused too early";
          }) == "");
  }
}

TEST_CASE("windows: an argument that one rank refuses is an error on all ranks, in a group at its end") {
  struct Wrong {
    const char* text;
    ncclResult_t (*call)(ncclComm_t, char* memory, ncclWindow_t* window);
  };
  const Wrong cases[] = {
      {"it must be a multiple of 4096 bytes",
       [](ncclComm_t comm, char* memory, ncclWindow_t* window) {
         return ncclCommWindowRegister(comm, memory + 64, 4096, window, NCCL_WIN_COLL_SYMMETRIC);
       }},
      {"buff is NULL",
       [](ncclComm_t comm, char*, ncclWindow_t* window) { return ncclCommWindowRegister(comm, nullptr, 4096, window, 1); }},
      {"win is NULL",
       [](ncclComm_t comm, char* memory, ncclWindow_t*) { return ncclCommWindowRegister(comm, memory, 4096, nullptr, 1); }},
      {"size is 0",
       [](ncclComm_t comm, char* memory, ncclWindow_t* window) { return ncclCommWindowRegister(comm, memory, 0, window, 1); }},
      {"winFlags is 0x6", [](ncclComm_t comm, char* memory, ncclWindow_t* window) {
         return ncclCommWindowRegister(comm, memory, 4096, window, 6);
       }}};
  for (const Wrong& each : cases)
    for (const bool grouped : {false, true}) {
      INFO(each.text << (grouped ? ", grouped" : ""));
      CHECK(with_block("shm", 3, [&](const Ranks& ranks, ncclComm_t comm, void* memory) -> std::string {
              ncclWindow_t window = nullptr;
              if (grouped) ncclGroupStart();
              ncclResult_t result = ranks.rank == 1 ? each.call(comm, static_cast<char*>(memory), &window)
                                                    : ncclCommWindowRegister(comm, memory, 4096, &window, 1);
              if (grouped) {
                if (ranks.rank == 1)
                  if (std::string wrong = refused(result, ncclInvalidArgument, each.text); !wrong.empty())
                    return "at once: " + wrong;
                result = ncclGroupEnd();
              }
              if (window != nullptr) return "something was registered";
              return ranks.rank == 1 ? refused(result, ncclInvalidArgument, each.text)
                                     : refused(result, ncclInvalidUsage, "rank 1 called it with an argument that is wrong");
            }) == "");
    }
}

TEST_CASE("windows: a registration is not taken for the user's own all-gather of as much") {
  const std::string wrong = testing::run_ranks("shm", 2, 60, [](const Ranks& ranks) -> std::string {
    ncclComm_t comm = nullptr;
    if (std::string bad = testing::init(ranks, comm); !bad.empty()) return bad;
    std::array<std::uint64_t, 3> mine{4096, 0, 0};
    std::array<std::uint64_t, 6> all{};
    ncclWindow_t window = nullptr;
    const Block memory = block();
    const ncclResult_t result = ranks.rank == 0 ? ncclAllGather(mine.data(), all.data(), 3, ncclUint64, comm, nullptr)
                                                : ncclCommWindowRegister(comm, memory.get(), 4096, &window, NCCL_WIN_DEFAULT);
    ncclCommAbort(comm);
    return result == ncclSuccess ? "different calls went well" : "";
  });
  CHECK(wrong == "");
}
