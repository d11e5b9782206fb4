// SPDX-License-Identifier: Apache-2.0
// Sends and receives: in groups and alone, in order, to oneself, on streams, and what goes wrong.
#include <shoal/shoal.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "support/pattern.h"
#include "support/ranks.h"

namespace {

using testing::must;
using testing::Ranks;
using testing::with_comm;

void on_all_transports(int world, const std::function<std::string(const Ranks&)>& body) {
  for (const char* transport : {"threads", "shm", "tcp"}) {
    INFO(transport << ", world " << world);
    CHECK(testing::run_ranks(transport, world, 60, body) == "");
  }
}

}  // namespace

TEST_CASE("point to point: a ring shift of any length in one group") {
  for (int world : {2, 3, 5})
    on_all_transports(world, [](const Ranks& ranks) {
      return with_comm(ranks, [&](ncclComm_t comm) -> std::string {
        const int next = (ranks.rank + 1) % ranks.world, previous = (ranks.rank + ranks.world - 1) % ranks.world;
        for (const std::size_t n :
             {std::size_t{0}, std::size_t{1}, std::size_t{65536}, std::size_t{65537}, std::size_t{3000001}}) {
          const auto out = testing::bytes_of(ranks.rank, n);
          std::vector<std::byte> in(n);
          ncclGroupStart();
          ncclSend(out.data(), n, ncclUint8, next, comm, nullptr);
          ncclRecv(in.data(), n, ncclUint8, previous, comm, nullptr);
          if (std::string wrong = must(ncclGroupEnd(), "ncclGroupEnd"); !wrong.empty()) return wrong;
          if (in != testing::bytes_of(previous, n)) return "wrong data, " + std::to_string(n) + " bytes";
        }
        return "";
      });
    });
}

TEST_CASE("point to point: outside groups a send meets the receive of the other rank; small ones need no partner at once") {
  on_all_transports(2, [](const Ranks& ranks) {
    return with_comm(ranks, [&](ncclComm_t comm) -> std::string {
      for (int round = 0; round < 50; ++round) {
        std::int32_t value = round;
        if (ranks.rank == 0) {
          if (std::string wrong = must(ncclSend(&value, 1, ncclInt32, 1, comm, nullptr), "ncclSend"); !wrong.empty())
            return wrong;
          if (std::string wrong = must(ncclRecv(&value, 1, ncclInt32, 1, comm, nullptr), "ncclRecv"); !wrong.empty())
            return wrong;
          if (value != round + 1000) return "got " + std::to_string(value);
        } else {
          if (std::string wrong = must(ncclRecv(&value, 1, ncclInt32, 0, comm, nullptr), "ncclRecv"); !wrong.empty())
            return wrong;
          value += 1000;
          if (std::string wrong = must(ncclSend(&value, 1, ncclInt32, 0, comm, nullptr), "ncclSend"); !wrong.empty())
            return wrong;
        }
      }
      return "";
    });
  });
}

// A rank without patience sleeps at once. What it has just read off a socket must not be slept over until the next look around,
// which would take 50 ms each time: far longer than this test may take.
TEST_CASE("point to point: a rank that never spins misses no message over TCP") {
  testing::Variables variables = testing::transport_variables("tcp");
  variables.emplace_back("SHOAL_SPIN_US", "0");
  CHECK(testing::as_processes(2, variables, 60, [](const Ranks& ranks) {
          return with_comm(ranks, [&](ncclComm_t comm) -> std::string {
            std::int64_t value = 0;
            for (int round = 0; round < 4000; ++round)
              for (const int sender : {0, 1})
                if (std::string wrong = ranks.rank == sender
                                            ? must(ncclSend(&value, 1, ncclInt64, 1 - sender, comm, nullptr), "send")
                                            : must(ncclRecv(&value, 1, ncclInt64, sender, comm, nullptr), "recv");
                    !wrong.empty())
                  return wrong;
            return "";
          });
        }) == "");
}

TEST_CASE("point to point: several transfers between the same two ranks pair up in order, beside collectives") {
  on_all_transports(3, [](const Ranks& ranks) {
    return with_comm(ranks, [&](ncclComm_t comm) -> std::string {
      constexpr int kTimes = 20;
      const int to = (ranks.rank + 1) % ranks.world, from = (ranks.rank + 2) % ranks.world;
      std::vector<std::vector<std::byte>> out, in;
      for (int i = 0; i < kTimes; ++i) {
        out.push_back(testing::bytes_of(ranks.rank, static_cast<std::size_t>(i * 977), static_cast<std::size_t>(i)));
        in.emplace_back(out.back().size());
      }
      std::int64_t one = 1, sum = 0;
      ncclGroupStart();
      for (int i = 0; i < kTimes; ++i) {
        const auto at = static_cast<std::size_t>(i);
        ncclRecv(in[at].data(), in[at].size(), ncclInt8, from, comm, nullptr);
        if (i == 7 + ranks.rank)
          ncclAllReduce(&one, &sum, 1, ncclInt64, ncclSum, comm, nullptr);  // at another place on every rank
        ncclSend(out[at].data(), out[at].size(), ncclInt8, to, comm, nullptr);
      }
      if (std::string wrong = must(ncclGroupEnd(), "ncclGroupEnd"); !wrong.empty()) return wrong;
      if (sum != ranks.world) return "the all-reduce gave " + std::to_string(sum);
      for (int i = 0; i < kTimes; ++i)
        if (in[static_cast<std::size_t>(i)] !=
            testing::bytes_of(from, static_cast<std::size_t>(i * 977), static_cast<std::size_t>(i)))
          return "transfer " + std::to_string(i) + " is wrong";
      return "";
    });
  });
}

TEST_CASE("point to point: collectives stay in step when only some ranks have had transfers") {
  on_all_transports(3, [](const Ranks& ranks) {
    return with_comm(ranks, [&](ncclComm_t comm) -> std::string {
      std::int32_t value = 7;
      if (ranks.rank == 0) ncclSend(&value, 1, ncclInt32, 1, comm, nullptr);
      if (ranks.rank == 1) ncclRecv(&value, 1, ncclInt32, 0, comm, nullptr);
      std::int32_t sum = 0;
      if (std::string wrong = must(ncclAllReduce(&value, &sum, 1, ncclInt32, ncclSum, comm, nullptr), "all-reduce");
          !wrong.empty())
        return wrong;
      return sum == 21 ? "" : "the sum is " + std::to_string(sum);
    });
  });
}

TEST_CASE("point to point: a group may use several streams; each waits for the whole") {
  on_all_transports(2, [](const Ranks& ranks) {
    return with_comm(ranks, [&](ncclComm_t comm) -> std::string {
      cudaStream_t first = nullptr, second = nullptr;
      shoalStreamCreate(&first);
      shoalStreamCreate(&second);
      const std::size_t n = 500000;
      const auto out = testing::bytes_of(ranks.rank, n);
      std::vector<std::byte> in(n);
      ncclGroupStart();
      ncclSend(out.data(), n, ncclInt8, 1 - ranks.rank, comm, first);
      ncclRecv(in.data(), n, ncclInt8, 1 - ranks.rank, comm, second);
      std::string wrong = must(ncclGroupEnd(), "ncclGroupEnd");
      if (wrong.empty()) wrong = must(shoalStreamSynchronize(second), "shoalStreamSynchronize");
      if (wrong.empty() && in != testing::bytes_of(1 - ranks.rank, n)) wrong = "wrong data";
      shoalStreamDestroy(first);
      shoalStreamDestroy(second);
      return wrong;
    });
  });
}

TEST_CASE("point to point: lengths that differ are an error that names both, on the receiving rank; the other rank hears of it") {
  const std::string said = testing::run_ranks("shm", 2, 60, [](const Ranks& ranks) {
    return with_comm(ranks, [&](ncclComm_t comm) -> std::string {
      std::vector<std::byte> data(1 << 20);
      std::string wrong = ranks.rank == 0 ? must(ncclSend(data.data(), 80, ncclInt8, 1, comm, nullptr), "ncclSend")
                                          : must(ncclRecv(data.data(), 88, ncclInt8, 0, comm, nullptr), "ncclRecv");
      std::int32_t value = 0;
      if (wrong.empty()) wrong = must(ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comm, nullptr), "all-reduce");
      return wrong;
    });
  });
  CHECK_THAT(said, Catch::Contains("sends 80 bytes to rank 1") && Catch::Contains("which receives 88"));
}

TEST_CASE("point to point: bad arguments") {
  CHECK(testing::run_ranks("threads", 2, 60, [](const Ranks& ranks) {
          return with_comm(ranks, [&](ncclComm_t comm) -> std::string {
            std::int32_t value = 0;
            if (ncclSend(&value, 1, ncclInt32, 2, comm, nullptr) != ncclInvalidArgument)
              return "a peer beyond the world was taken";
            if (ncclRecv(&value, 1, ncclInt32, -1, comm, nullptr) != ncclInvalidArgument) return "a negative peer was taken";
            if (ncclSend(nullptr, 1, ncclInt32, 0, comm, nullptr) != ncclInvalidArgument) return "NULL was taken";
            if (ncclSend(&value, 1, ncclInt32, ranks.rank, comm, nullptr) != ncclInvalidUsage)
              return "a lone send to oneself was taken";
            ncclGroupStart();
            ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comm, nullptr);  // goes with the group: takes no place
            ncclSend(&value, 1, ncclInt32, ranks.rank, comm, nullptr);
            ncclRecv(&value, 1, ncclInt8, ranks.rank, comm, nullptr);
            if (ncclGroupEnd() != ncclInvalidUsage) return "lengths to oneself that differ were taken";
            return must(ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comm, nullptr), "a call after the errors");
          });
        }) == "");
}
