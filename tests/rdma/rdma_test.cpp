// SPDX-License-Identifier: Apache-2.0
// Whole communicators over verbs between hosts that have RDMA devices (fabric.h); without such hosts nothing is tested, and a
// warning says so. Devices may be made of software and slow: times are generous, vectors short.
#include <fmt/format.h>
#include <shoal/shoal.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <stdexcept>
#include <thread>

#include "rdma/fabric.h"
#include "rdma/rounds.h"
#include "support/shared.h"

using namespace testing;

namespace {

constexpr int kPatience_s = 240;

Variables with(Variables all, const Variables& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

bool has_hosts(int wanted) {
  if (rdma_hosts() >= wanted) return true;
  WARN("SKIP: " << wanted << " hosts with RDMA devices are wanted, there are " << rdma_hosts());
  return false;
}

// Ranks on hosts by turns.
std::function<void(int)> spread(int hosts) {
  return [hosts](int rank) { enter_rdma_host(rank % hosts + 1); };
}

// Every link goes over verbs if hosts have one rank each, or nothing else is let.
std::string collectives(int world, int hosts, const Variables& variables, const std::vector<std::size_t>& counts) {
  return as_processes(
      world, variables, kPatience_s,
      [&](const Ranks& who) {
        return with_comm(who, [&](ncclComm_t comm) {
          std::string wrong;
          for (const std::size_t count : counts)
            for (const bool pinned : {false, true})
              if (wrong.empty()) wrong = every_collective(who, comm, count, pinned);
          return wrong;
        });
      },
      {}, spread(hosts));
}

// Waits for the trouble that `make` brings about in rank 1 on host 2; the others' texts, each once.
std::string survivors(const Variables& variables, const std::function<void(ncclComm_t)>& in_rank_1,
                      const std::vector<int>& dies) {
  return as_processes(
      3, variables, kPatience_s,
      [&](const Ranks& who) -> std::string {
        ncclComm_t comm = nullptr;
        if (std::string wrong = init(who, comm); !wrong.empty()) return wrong;
        if (std::string wrong = every_collective(who, comm, 1000, false); !wrong.empty()) return "too early: " + wrong;
        if (who.rank == 1) in_rank_1(comm);
        std::vector<float> data(100'000, 1);
        std::string said;
        while (said.empty())
          said = must(ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat, ncclMax, comm, nullptr), "ncclAllReduce");
        ncclCommAbort(comm);
        return said;
      },
      dies, spread(2));
}

}  // namespace

TEST_CASE("rdma: every collective over verbs, worlds of 2 to 5, on two hosts and four", "[collectives]") {
  const int hosts = GENERATE(2, 4);
  const int world = GENERATE(2, 3, 4, 5);
  if (!has_hosts(hosts)) return;
  CAPTURE(hosts, world);
  const LinkLog log;
  CHECK(collectives(world, hosts, with(log.variables(), {{"NCCL_SHM_DISABLE", "1"}}), {0, 1, 1000, 20'011}) == "");
  CHECK(log.links("verbs") > 0);
  CHECK(log.links("tcp") == 0);
  if (log.links("tcp") != 0) WARN(log.text());
}

TEST_CASE("rdma: eight ranks, over shared memory within hosts and verbs between them", "[collectives]") {
  const int hosts = GENERATE(2, 4);
  if (!has_hosts(hosts)) return;
  CAPTURE(hosts);
  const LinkLog log;
  CHECK(collectives(8, hosts, log.variables(), {1, 5003}) == "");
  CHECK(log.links("verbs") > 0);
  CHECK(log.links("shm") > 0);
  CHECK(log.links("tcp") == 0);
}

TEST_CASE("rdma: several queue pairs carry the parts of long messages", "[collectives]") {
  if (!has_hosts(2)) return;
  const LinkLog log;
  CHECK(collectives(2, 2, with(log.variables(), {{"NCCL_IB_QPS_PER_CONNECTION", "4"}, {"SHOAL_SLICE_BYTES", "256K"}}),
                    {100'003}) == "");
  CHECK(log.links("verbs") > 0);
  CHECK(log.links("tcp") == 0);
}

TEST_CASE("rdma: where NCCL_IB_DISABLE is set, or NCCL_IB_HCA leaves no device, TCP serves, and the log says why",
          "[collectives]") {
  if (!has_hosts(2)) return;
  const Variables off = GENERATE(Variables{{"NCCL_IB_DISABLE", "1"}}, Variables{{"NCCL_IB_HCA", "=nosuch"}});
  const LinkLog log;
  CHECK(collectives(2, 2, with(log.variables(), off), {1000}) == "");
  CHECK(log.links("verbs") == 0);
  CHECK(log.links("tcp") > 0);
  if (off.front().first == "NCCL_IB_HCA")
    CHECK_THAT(log.text(), Catch::Contains("verbs: not used") && Catch::Contains("is not in NCCL_IB_HCA='=nosuch'"));
}

TEST_CASE("rdma: one host has no device that it may use: its links go over TCP", "[collectives]") {
  if (!has_hosts(2)) return;
  const LinkLog log;
  const std::string said = as_processes(
      2, log.variables(), kPatience_s,
      [&](const Ranks& who) { return with_comm(who, [&](ncclComm_t comm) { return every_collective(who, comm, 1000, false); }); },
      {},
      [](int rank) {
        if (rank == 1) ::setenv("NCCL_IB_DISABLE", "1", 1);
        enter_rdma_host(rank + 1);
      });
  CHECK(said == "");
  CHECK(log.links("verbs") == 0);
  CHECK(log.links("tcp") > 0);
}

TEST_CASE("rdma: a killed rank is named on all others", "[faults]") {
  if (!has_hosts(2)) return;
  const std::string said = survivors({{"NCCL_SHM_DISABLE", "1"}}, [](ncclComm_t) { ::kill(::getpid(), SIGKILL); }, {1});
  CAPTURE(said);
  for (const char* rank : {"rank 0: ", "rank 2: "}) CHECK_THAT(said, Catch::Contains(rank + std::string("ncclAllReduce")));
  CHECK_THAT(said, Catch::Contains("rank 1 ("));
  CHECK_THAT(said, !Catch::Contains("too early") && !Catch::Contains("still running"));
}

TEST_CASE("rdma: a mismatch names the odd call", "[faults]") {
  if (!has_hosts(2)) return;
  const std::string said = survivors({{"NCCL_SHM_DISABLE", "1"}},
                                     [](ncclComm_t comm) {
                                       int x = 0;
                                       (void)ncclAllReduce(&x, &x, 1, ncclInt, ncclProd, comm, nullptr);
                                     },
                                     {1});
  CAPTURE(said);
  CHECK_THAT(said, Catch::Contains("rank 0: ncclAllReduce: invalid usage") && Catch::Contains("rank 1"));
  CHECK_THAT(said, !Catch::Contains("too early") && !Catch::Contains("still running"));
}

TEST_CASE("rdma: a host that is cut off, by its link or by loss of everything, is named", "[faults]") {
  if (!has_hosts(2)) return;
  const bool down = GENERATE(true, false);
  CAPTURE(down);
  const std::string said = survivors(
      {{"NCCL_SHM_DISABLE", "1"}, {"NCCL_IB_TIMEOUT", "16"}},
      [down](ncclComm_t) { on_rdma_host(2, down ? "ip link set eth0 down" : "tc qdisc replace dev eth0 root netem loss 100%"); },
      {1});
  on_rdma_host(2, down ? "ip link set eth0 up" : "tc qdisc del dev eth0 root");
  CAPTURE(said);
  CHECK_THAT(said, Catch::Contains("rank 0: ncclAllReduce: another rank died, left or failed"));
  CHECK_THAT(said, !Catch::Contains("too early") && !Catch::Contains("still running"));
}

TEST_CASE("rdma: the loss of one packet in a hundred changes nothing but time", "[loss]") {
  if (!has_hosts(2)) return;
  for (const int host : {1, 2}) on_rdma_host(host, "tc qdisc replace dev eth0 root netem loss 1%");
  const LinkLog log;
  CHECK(collectives(3, 2, with(log.variables(), {{"NCCL_SHM_DISABLE", "1"}, {"NCCL_IB_TIMEOUT", "16"}}), {1, 5003}) == "");
  CHECK(log.links("verbs") > 0);
  for (const int host : {1, 2}) on_rdma_host(host, "tc qdisc del dev eth0 root");
}
