// SPDX-License-Identifier: Apache-2.0
// Field cases FC-21 to FC-23: which address a rank is reached at, on hosts that make it hard.
#include <sys/resource.h>
#include <sys/time.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <string>

#include "network/hosts.h"
#include "network/rounds.h"

using namespace testing;

namespace {

bool skipped() {
  if (why_no_hosts().empty()) return false;
  WARN("SKIP: no network namespaces: " << why_no_hosts());
  return true;
}

std::string sum_once(const Ranks& who) {
  return with_comm(who, [&](ncclComm_t comm) { return all_reduce_once(comm, who, 100'000); });
}

// Ranks take turns on the hosts, so that every host has a rank that another one's must connect to.
std::string on_two(const Host& a, const Host& b, int world, const Variables& variables) {
  return as_processes(world, variables, 40, sum_once, {}, [&](int rank) { (rank % 2 == 0 ? a : b).enter(); });
}

void wire(const Host& a, const Host& b, const std::string& name) {
  a.cable(name, b, name);
  a.run("ip addr add 10.77.0.1/24 dev " + name);
  b.run("ip addr add 10.77.0.2/24 dev " + name);
}

// An interface whose other end is nobody's: what is sent there gets no answer.
std::string blind(const std::string& name) {
  return "ip link add " + name + " type veth peer name x" + name + " && ip link set x" + name +
         " addrgenmode none && ip link set x" + name + " up";
}

// Down; IPv4 link-local; IPv6 link-local only; an address that also exists on the other host; one that leads nowhere.
void clutter(const Host& host, int number) {
  std::string commands = "true";
  for (int i = 0; i < 20; ++i) {
    const std::string name = "d" + std::to_string(i), net = std::to_string(i);
    commands += " && " + blind(name);
    if (i % 5 == 0) commands += " && ip addr add 10.50." + net + ".1/24 dev " + name;
    if (i % 5 == 1) commands += " && ip addr add 169.254." + net + ".1/24 dev " + name;
    if (i % 5 == 3) commands += " && ip addr add 10.60." + net + ".1/24 dev " + name;
    if (i % 5 == 4) commands += " && ip addr add 10.61." + net + "." + std::to_string(number) + "/24 dev " + name;
    if (i % 5 == 0) commands += " && ip link set " + name + " down";
    if (i % 5 != 0) commands += " && ip link set " + name + " up";
  }
  host.run(commands);
}

}  // namespace

TEST_CASE("FC-21: hosts whose own names mean loopback, or nothing, find each other") {
  if (skipped()) return;
  const std::string wrong = with_hosts(80, []() -> std::string {
    const Host a("alpha"), b("beta");
    wire(a, b, "eth0");
    a.write_etc("hosts", "127.0.0.1 localhost\n127.0.1.1 alpha\n");
    b.write_etc("hosts", "127.0.0.1 localhost beta\n10.77.0.1 alpha\n");
    std::string result = on_two(a, b, 2, {});
    result += on_two(a, b, 3, {{"NCCL_COMM_ID", "alpha:4711"}, {"SHOAL_SECRET", "of this test"}});
    const Host c("unheard.of"), d("unheard.of.too");
    wire(c, d, "eth0");
    return result + on_two(c, d, 2, {});
  });
  CHECK(wrong == "");
}

TEST_CASE("FC-21: a root that only has loopback is named by its address to ranks of other hosts, soon") {
  if (skipped()) return;
  const std::string said = with_hosts(60, []() -> std::string {
    const Host a("alpha"), b("beta");
    wire(a, b, "eth0");
    return as_processes(2, {{"SHOAL_TIMEOUT_MS", "7000"}}, 30, sum_once, {}, [&](int rank) {
      (rank == 0 ? a : b).enter();
      if (rank == 0) setenv("NCCL_SOCKET_IFNAME", "lo", 1);
    });
  });
  CHECK_THAT(said, Catch::Contains("rank 0: ncclCommInitRank: ") &&
                       Catch::Contains("only 1 of 2 ranks came within 7000 ms; missing: 1"));
  CHECK_THAT(said, Catch::Contains("rank 1: ncclCommInitRank: ") && Catch::Contains("at 127.0.0.1:") &&
                       Catch::Contains("Connection refused") && Catch::Contains("set NCCL_SOCKET_IFNAME there"));
}

TEST_CASE("FC-21: a rank that offers only loopback to another host is an error of all, naming it and the remedy") {
  if (skipped()) return;
  const std::string said = with_hosts(60, []() -> std::string {
    const Host a("alpha"), b("beta");
    wire(a, b, "eth0");
    return as_processes(2, {}, 30, sum_once, {}, [&](int rank) {
      (rank == 0 ? a : b).enter();
      if (rank == 1) setenv("NCCL_SOCKET_IFNAME", "lo", 1);
    });
  });
  for (const char* rank : {"rank 0: ", "rank 1: "})
    CHECK_THAT(said, Catch::Contains(std::string(rank) + "ncclCommInitRank: ") && Catch::Contains("rank 1 (beta, pid ") &&
                         Catch::Contains("can only be reached at 127.0.0.1:") &&
                         Catch::Contains("set NCCL_SOCKET_IFNAME on beta"));
}

TEST_CASE("FC-22: filters of interfaces do what their grammar says; no match quotes the filter and lists what was seen") {
  if (skipped()) return;
  const std::string many(300, 'e');
  const auto [filter, good] = GENERATE_COPY(table<std::string, bool>({{"lo", true},
                                                                      {"=lo", true},
                                                                      {"^docker,veth", true},
                                                                      {"^=lo", true},
                                                                      {"eth0:5000", true},
                                                                      {"nosuch0", false},
                                                                      {"lo,nosuch0", true},
                                                                      {"", true},
                                                                      {"^", false},
                                                                      {"=^lo", false},
                                                                      {many, false}}));
  CAPTURE(filter);
  const std::string said = with_hosts(60, [&, filter = filter]() -> std::string {
    shell(blind("eth0") + " && ip addr add 10.1.2.3/24 dev eth0 && ip link set eth0 up && " + blind("docker0") +
          " && ip addr add 172.17.0.1/16 dev docker0 && ip link set docker0 up");
    for (const char* name : {"eth0", "docker0"})  // on a busy machine the kernel sees a wire some time after it is there
      shell("until ip -o link show " + std::string(name) + " | grep -q 'state UP'; do sleep 0.02; done");
    Variables variables = transport_variables("tcp");
    variables.emplace_back("NCCL_SOCKET_IFNAME", filter);
    return as_processes(2, variables, 30, sum_once, {1});
  });
  if (good) {
    CHECK(said == "");
  } else {
    CHECK_THAT(said, Catch::Contains("NCCL_SOCKET_IFNAME='" + filter + "'"));
    if (filter == "nosuch0") CHECK_THAT(said, Catch::Contains("eth0 (10.1.2.3)") && Catch::Contains("docker0 (172.17.0.1)"));
  }
}

TEST_CASE("FC-23: of twenty useless interfaces the one that carries traffic is found, for ranks on either host") {
  if (skipped()) return;
  const int world = GENERATE(2, 4, 5);
  const std::string wrong = with_hosts(80, [&]() -> std::string {
    const Host a("alpha"), b("beta");
    clutter(a, 1);
    clutter(b, 2);
    wire(a, b, "zz9");
    return on_two(a, b, world, {});
  });
  CHECK(wrong == "");
}

TEST_CASE("FC-23: link-local addresses are used where there is nothing else, each host by its own interface's name") {
  if (skipped()) return;
  const std::string wrong = with_hosts(80, []() -> std::string {
    const Host a("alpha"), b("beta");
    for (const Host* host : {&a, &b})
      host->run(blind("aa0") + " && ip link set aa0 addrgenmode none && ip link set aa0 up && ip addr add fe80::" +
                std::string(host == &a ? "a" : "b") + "/64 dev aa0 nodad");
    a.cable("left", b, "right");
    a.run("ip addr flush dev left; ip addr add fe80::77:1/64 dev left nodad");
    b.run("ip addr flush dev right; ip addr add fe80::77:2/64 dev right nodad");
    return on_two(a, b, 2, {}) + on_two(a, b, 4, {});
  });
  CHECK(wrong == "");
}

TEST_CASE("FC-23: where nothing carries traffic, the error lists the addresses that were tried, and waiting costs little") {
  if (skipped()) return;
  const std::string said = with_hosts(80, []() -> std::string {
    const Host a("alpha"), b("beta");
    clutter(a, 1);
    clutter(b, 2);
    return as_processes(
        2, {{"SHOAL_TIMEOUT_MS", "4000"}}, 40,
        [](const Ranks& who) -> std::string {
          const auto begin = std::chrono::steady_clock::now();
          const std::string failed = sum_once(who);
          const double waited = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
          rusage used{};
          getrusage(RUSAGE_SELF, &used);
          const double busy = static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                              static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
          return failed + (busy > waited / 2 ? " [busy all the time]" : "") + (waited > 30 ? " [too late]" : "");
        },
        {}, [&](int rank) { (rank == 0 ? a : b).enter(); });
  });
  CHECK_THAT(said, Catch::Contains("only 1 of 2 ranks came"));
  CHECK_THAT(said, Catch::Contains("rank 1: ncclCommInitRank: ") && Catch::Contains("10.60.3.1:") &&
                       Catch::Contains("10.61.4.1:") && Catch::Contains("no answer") && Catch::Contains("Connection refused"));
  CHECK_THAT(said, !Catch::Contains("[busy") && !Catch::Contains("[too late]"));
}
