// SPDX-License-Identifier: Apache-2.0
// Bytes on the wire, counted and compared with the formulas.
#include <barrier>
#include <catch2/catch.hpp>

#include "ps/group.h"

namespace {

using testing::Group;
using testing::must;
using testing::pull;
using testing::push;
using testing::run_group;

constexpr std::uint64_t kHeader = 32;

shoalPsStatistics statistics(shoalPs_t ps, int peer = -1) {
  shoalPsStatistics found{};
  if (shoalPsStats(ps, peer, &found) != ncclSuccess) found.messagesSent = UINT64_MAX;
  return found;
}

std::string equal(const char* what, std::uint64_t seen, std::uint64_t expected) {
  return seen == expected ? "" : std::string(what) + " is " + std::to_string(seen) + ", must be " + std::to_string(expected);
}

std::string steps(shoalPs_t ps, std::size_t keys, int count) {
  std::vector<float> values(keys, 1);
  for (int i = 0; i < count; ++i) {
    if (std::string wrong = push(ps, 0, values); !wrong.empty()) return wrong;
    if (std::string wrong = must(shoalPsClock(ps), "shoalPsClock"); !wrong.empty()) return wrong;
    if (std::string wrong = pull(ps, 0, values); !wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace

TEST_CASE("ps traffic: a worker moves n each way a step, a server W n / S") {
  const std::size_t keys = 4 * 12'345;
  const int count = 3;
  const auto run = [&](const char* transport, int workers, int servers) {
    INFO(transport << ", " << workers << " workers, " << servers << " servers");
    const auto s = static_cast<std::uint64_t>(servers), w = static_cast<std::uint64_t>(workers), n = std::uint64_t{count};
    const std::uint64_t vector = keys * sizeof(float), part = vector / s;
    const std::uint64_t pieces = (part + (65536 - kHeader) - 1) / (65536 - kHeader);  // of a part, in messages
    Group group{.config = testing::config_of(workers, servers, keys),
                .work = [=](shoalPs_t ps, int) -> std::string {
                  if (std::string wrong = steps(ps, keys, count); !wrong.empty()) return wrong;
                  const shoalPsStatistics seen = statistics(ps);
                  std::string wrong = equal("sent", seen.payloadBytesSent, n * vector) +
                                      equal("received", seen.payloadBytesReceived, n * vector) +
                                      equal("messages sent", seen.payloadMessagesSent, n * s * pieces) +
                                      equal("messages received", seen.payloadMessagesReceived, n * s * pieces) +
                                      // a clock and a request each to every server; an acknowledgement of every push
                                      equal("all sent", seen.messagesSent, n * s * (pieces + 2)) +
                                      equal("all received", seen.messagesReceived, n * s * (pieces + 1)) +
                                      equal("headers", seen.headerBytesSent, kHeader * seen.messagesSent);
                  for (int server = 0; server < servers; ++server)
                    wrong += equal("sent to one", statistics(ps, workers + server).payloadBytesSent, n * part);
                  return wrong;
                },
                .served =
                    [=](shoalPs_t ps, int) {
                      const shoalPsStatistics seen = statistics(ps);
                      return equal("sent", seen.payloadBytesSent, n * w * part) +
                             equal("received", seen.payloadBytesReceived, n * w * part) +
                             equal("both a step", (seen.payloadBytesSent + seen.payloadBytesReceived) / n, 2 * w * vector / s) +
                             equal("headers", seen.headerBytesReceived, kHeader * seen.messagesReceived);
                    }};
    CHECK(run_group(transport, group) == "");
  };
  for (int servers : {1, 2, 4})
    for (int workers : {2, 4, 8}) run("threads", workers, servers);
  run("shm", 4, 2);
  run("tcp", 2, 4);
}

TEST_CASE("ps traffic: with balanced shares the busiest port carries what BytePS says") {
  struct Case {
    int workers, spare;
    std::size_t keys;
    std::size_t most;  // keys that the busiest machine sends, and receives
  };
  // 1.75, 14/11 = 1.2727 and 1.0 times the keys.
  for (const Case& c : {Case{8, 0, 88'000, 154'000}, Case{8, 4, 88'000, 112'000}, Case{8, 8, 88'000, 88'000}}) {
    INFO(c.workers << " machines with workers, " << c.spare << " spare");
    const int machines = c.workers + c.spare;
    std::vector<std::size_t> shares(static_cast<std::size_t>(machines));
    REQUIRE(shoalPsBalancedShares(c.keys, c.workers, c.spare, shares.data()) == ncclSuccess);
    shoalPsConfig config = testing::config_of(c.workers, machines, c.keys);
    config.shares = shares.data();
    std::barrier everyone(machines);
    // A machine is a thread here. What a worker and the server beside it say to each other does not pass its port.
    const auto machine = [&](const testing::Ranks& ranks) -> std::string {
      const bool works = ranks.rank < c.workers;
      const int beside = c.workers + ranks.rank;
      shoalPs_t worker = nullptr, server = nullptr;
      std::string wrong = must(shoalPsServeInBackground(&server, ranks.id, beside, &config), "shoalPsServeInBackground");
      if (works && wrong.empty()) wrong = must(shoalPsInit(&worker, ranks.id, ranks.rank, &config), "shoalPsInit");
      if (works && wrong.empty()) wrong = steps(worker, c.keys, 1);
      everyone.arrive_and_wait();
      std::uint64_t sent = 0, received = 0;
      const auto count = [&](shoalPs_t ps, int local_peer) {
        const shoalPsStatistics all = statistics(ps), local = works ? statistics(ps, local_peer) : shoalPsStatistics{};
        sent += all.payloadBytesSent - local.payloadBytesSent;
        received += all.payloadBytesReceived - local.payloadBytesReceived;
      };
      count(server, ranks.rank);
      if (works) count(worker, beside);
      everyone.arrive_and_wait();
      if (wrong.empty()) wrong = equal("sent", sent, c.most * sizeof(float));
      if (wrong.empty()) wrong = equal("received", received, c.most * sizeof(float));
      if (works) wrong += must(shoalPsDestroy(worker), "destroy the worker");
      return wrong + must(shoalPsDestroy(server), "destroy the server");
    };
    CHECK(testing::as_threads(machines, {}, 60, machine) == "");
  }
}
