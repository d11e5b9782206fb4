// SPDX-License-Identifier: Apache-2.0
// ncclGroupSimulateEnd: what a group would take, and that nothing of it runs.
#include <shoal/shoal.h>
#include <sys/mman.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <sstream>

#include "support/ranks.h"

namespace {

using testing::must;
using testing::Ranks;

// The estimate of a group that `issue` fills, in microseconds; below 0: it failed.
float estimate(const std::function<void()>& issue) {
  ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  ncclGroupStart();
  issue();
  return ncclGroupSimulateEnd(&info) == ncclSuccess ? info.estimatedTime : -2;
}

// The winner's predicted time in what shoalExplain says: the first number of the third line.
double explained_us(ncclComm_t comm, std::size_t count) {
  std::array<char, 8192> text{};
  if (shoalExplain(comm, "all_reduce", count, ncclFloat, 0, text.data(), text.size()) != ncclSuccess) return -1;
  std::istringstream lines(text.data());
  std::string line, name;
  std::getline(lines, line);
  std::getline(lines, line);
  double time = -1;
  lines >> name >> time;
  return time;
}

std::string refused(ncclResult_t result, ncclResult_t code, const std::string& text) {
  const std::string said = ncclGetLastError(nullptr);
  if (result == code && said.find(text) != std::string::npos) return "";
  return "expected code " + std::to_string(code) + " and \"" + text + "\", got " + std::to_string(result) + ": " + said;
}

}  // namespace

TEST_CASE("simulate: a group takes as long as its calls one after the other, as the tuner prices them, and nothing runs") {
  for (const char* transport : {"threads", "shm", "tcp"}) {
    INFO(transport);
    CHECK(testing::run_ranks(transport, 3, 60, [](const Ranks& ranks) {
            return testing::with_comm(ranks, [&](ncclComm_t comm) -> std::string {
              std::vector<float> values(1 << 18, static_cast<float>(ranks.rank));
              const auto all_reduce = [&](std::size_t count) {
                ncclAllReduce(values.data(), values.data(), count, ncclFloat, ncclSum, comm, nullptr);
              };
              const float small = estimate([&] { all_reduce(1024); }), large = estimate([&] { all_reduce(1 << 18); });
              const float both = estimate([&] { all_reduce(1024), all_reduce(1 << 18); });
              if (!(small > 0 && large > small)) return "estimates " + std::to_string(small) + " and " + std::to_string(large);
              if (std::abs(both - (small + large)) > 0.001f * both) return "two calls do not take as long as one and one";
              if (std::abs(explained_us(comm, 1024) - static_cast<double>(small)) > 0.01)
                return "shoalExplain says " + std::to_string(explained_us(comm, 1024)) + ", not " + std::to_string(small);
              for (const float value : values)
                if (value != static_cast<float>(ranks.rank)) return "something ran";
              return must(ncclAllReduce(values.data(), values.data(), 1, ncclFloat, ncclSum, comm, nullptr),
                          "all-reduce afterwards");
            });
          }) == "");
  }
}

TEST_CASE("simulate: transfers are priced too, and take their turn after the collectives") {
  CHECK(testing::run_ranks("shm", 2, 60, [](const Ranks& ranks) {
          return testing::with_comm(ranks, [&](ncclComm_t comm) -> std::string {
            std::vector<std::int32_t> out(1 << 18, ranks.rank), in(1 << 18, -1);
            const auto swap = [&](std::size_t count) {
              ncclSend(out.data(), count, ncclInt32, 1 - ranks.rank, comm, nullptr);
              ncclRecv(in.data(), count, ncclInt32, 1 - ranks.rank, comm, nullptr);
            };
            const auto barrier = [&] { shoalBarrier(comm, nullptr); };
            const float small = estimate([&] { swap(1); }), large = estimate([&] { swap(1 << 18); });
            const float both = estimate([&] { swap(1 << 18), barrier(); }), alone = estimate(barrier);
            if (!(small > 0 && large > 2 * small && alone > 0))
              return "estimates " + std::to_string(small) + ", " + std::to_string(large) + ", " + std::to_string(alone);
            if (std::abs(both - (large + alone)) > 0.001f * both) return "transfers and barrier do not add up";
            if (in[0] != -1) return "something ran";
            return "";
          });
        }) == "");
}

TEST_CASE("simulate: communicators of one group work side by side") {
  CHECK(testing::in_child({}, 60, []() -> std::string {
          std::array<ncclComm_t, 2> comms{};
          if (std::string wrong = must(ncclCommInitAll(comms.data(), 2, nullptr), "init"); !wrong.empty()) return wrong;
          std::array<float, 1000> values{};
          const auto all_reduce = [&](std::size_t r) {
            ncclAllReduce(values.data() + 500 * r, values.data() + 500 * r, 500, ncclFloat, ncclSum, comms[r], nullptr);
          };
          const float one = estimate([&] { all_reduce(0); }), both = estimate([&] { all_reduce(0), all_reduce(1); });
          if (one <= 0 || one != both) return "estimates " + std::to_string(one) + " and " + std::to_string(both);
          for (ncclComm_t comm : comms) ncclCommDestroy(comm);
          return "";
        }) == "");
}

TEST_CASE("simulate: the group ends however the call ends") {
  CHECK(testing::in_child({}, 60, []() -> std::string {
          ncclComm_t comm = nullptr;
          if (std::string wrong = must(ncclCommInitAll(&comm, 1, nullptr), "init"); !wrong.empty()) return wrong;
          ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
          if (std::string wrong = refused(ncclGroupSimulateEnd(&info), ncclInvalidUsage, "no ncclGroupStart"); !wrong.empty())
            return wrong;

          const auto end = [](ncclSimInfo_t* with) {
            ncclGroupStart();
            return ncclGroupSimulateEnd(with);
          };
          if (std::string wrong = refused(end(nullptr), ncclInvalidArgument, "simInfo is NULL"); !wrong.empty()) return wrong;
          info.magic = 7;
          if (std::string wrong = refused(end(&info), ncclInvalidArgument, "simInfo.magic is 0x7"); !wrong.empty()) return wrong;
          info = NCCL_SIM_INFO_INITIALIZER;
          info.size = 16;
          if (std::string wrong = refused(end(&info), ncclInvalidArgument, "simInfo.size is 16"); !wrong.empty()) return wrong;
          // A caller's shorter struct is not read past its end: behind this one is a page that nobody may read.
          auto* const pages = static_cast<char*>(mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
          if (mprotect(pages + 4096, 4096, PROT_NONE) != 0) return "mprotect";
          std::memcpy(pages + 4096 - 16, &info, 16);
          if (std::string wrong =
                  refused(end(reinterpret_cast<ncclSimInfo_t*>(pages + 4096 - 16)), ncclInvalidArgument, "simInfo.size is 16");
              !wrong.empty())
            return wrong;
          munmap(pages, 8192);
          if (ncclGroupEnd() != ncclInvalidUsage) return "a group is still open";
          info = NCCL_SIM_INFO_INITIALIZER;
          info.size = 4096;  // of a newer header
          if (std::string wrong = must(end(&info), "larger struct"); !wrong.empty()) return wrong;
          if (info.estimatedTime != 0 || info.size != 4096) return "an empty group takes time";

          float value = 1;
          info = NCCL_SIM_INFO_INITIALIZER;
          ncclGroupStart();
          ncclGroupStart();
          ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, comm, nullptr);
          if (std::string wrong = must(ncclGroupSimulateEnd(&info), "inner group"); !wrong.empty()) return wrong;
          if (info.estimatedTime != NCCL_UNDEF_FLOAT) return "an inner group was simulated";
          if (std::string wrong = must(ncclGroupEnd(), "outer group"); !wrong.empty()) return wrong;

          info = NCCL_SIM_INFO_INITIALIZER;
          ncclGroupStart();
          ncclAllReduce(&value, &value, 1, static_cast<ncclDataType_t>(11), static_cast<ncclRedOp_t>(77), comm, nullptr);
          if (std::string wrong = refused(ncclGroupSimulateEnd(&info), ncclInvalidArgument, "op is 77"); !wrong.empty())
            return wrong;

          ncclUniqueId id;
          ncclComm_t other = nullptr;
          if (std::string wrong = must(ncclGetUniqueId(&id), "id"); !wrong.empty()) return wrong;
          ncclGroupStart();
          ncclCommInitRank(&other, 1, id, 0);
          if (std::string wrong = refused(ncclGroupSimulateEnd(&info), ncclInvalidUsage, "makes or ends communicators");
              !wrong.empty())
            return wrong;
          if (other != nullptr) return "a communicator was made";
          return must(ncclCommDestroy(comm), "destroy");
        }) == "");
}
