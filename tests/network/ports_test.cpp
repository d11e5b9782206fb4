// SPDX-License-Identifier: Apache-2.0
// Field case FC-24: many jobs at once, one port again and again, few ports for many connections.
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "network/hosts.h"
#include "network/rounds.h"

using namespace testing;

TEST_CASE("FC-24: fifty jobs of two ranks that start together do not take each other's ports") {
  constexpr int kJobs = 50;
  std::vector<std::unique_ptr<IdBoard>> boards;
  for (int i = 0; i < kJobs; ++i) boards.push_back(std::make_unique<IdBoard>());
  CHECK(as_processes(2 * kJobs, transport_variables("tcp"), 80, [&](const Ranks& all) {
          return one_round(*boards[static_cast<std::size_t>(all.rank / 2)], {2, all.rank % 2, {}}, 1);
        }) == "");
}

TEST_CASE("FC-24: the same fixed port serves a hundred communicators in a row") {
  if (!why_no_hosts().empty()) {
    WARN("SKIP: no network namespace: " << why_no_hosts());
    return;
  }
  CHECK(with_hosts(80, []() -> std::string {
          IdBoard board;
          Variables variables = transport_variables("tcp");
          variables.emplace_back("NCCL_COMM_ID", "127.0.0.1:4242");
          return as_processes(3, variables, 70, [&](const Ranks& who) -> std::string {
            for (int round = 1; round <= 100; ++round)
              if (std::string wrong = one_round(board, who, round); !wrong.empty()) return wrong;
            return "";
          });
        }) == "");
}

TEST_CASE("FC-24: short-lived communicators of eight ranks live with few ports") {
  if (!why_no_hosts().empty()) {
    WARN("SKIP: no network namespace: " << why_no_hosts());
    return;
  }
  CHECK(with_hosts(80, []() -> std::string {
          // 100 rounds here stand for 500 with 2000 ports.
          shell("echo 40000 40400 > /proc/sys/net/ipv4/ip_local_port_range");
          IdBoard board;
          return as_processes(8, transport_variables("tcp"), 70, [&](const Ranks& who) -> std::string {
            for (int round = 1; round <= 100; ++round)
              if (std::string wrong = one_round(board, who, round); !wrong.empty()) return wrong;
            return "";
          });
        }) == "");
}
