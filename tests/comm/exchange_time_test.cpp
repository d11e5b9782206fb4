// SPDX-License-Identifier: Apache-2.0
#include "comm/exchange_time.h"

#include <catch2/catch.hpp>

using namespace shoal;
using comm::exchange_time;
using engine::Transfer;

namespace {

// Numbers that are easy to add: 2 hosts of 2 ranks.
plan::Cluster cluster() {
  plan::Cluster made;
  made.hosts = 2;
  made.ranks_per_host = 2;
  made.overhead_s = 1;
  made.copy_Bps = 100;
  made.within = {.latency_s = 5, .bandwidth_Bps = 10, .credit_s = 0};
  made.nics.latency_s = 50;
  made.nics.out_Bps = 2;
  made.nics.in_Bps = 4;
  return made;
}

double time_of(const std::vector<Transfer>& transfers, const plan::Cluster& on = cluster()) {
  return exchange_time(transfers, {0}, {4}, on, {100});
}

Transfer send(int peer, std::size_t bytes) { return {.peer = {peer}, .sending = true, .size = {bytes}}; }
Transfer receive(int peer, std::size_t bytes) { return {.peer = {peer}, .size = {bytes}}; }

}  // namespace

TEST_CASE("exchange time: nothing takes no time, an empty message its latency and overhead") {
  CHECK(time_of({}) == 0);
  CHECK(time_of({send(1, 0)}) == Approx(5 + 1));
  CHECK(time_of({receive(1, 0)}) == Approx(5));
}

TEST_CASE("exchange time: wires of a pair work side by side, the network is shared") {
  CHECK(time_of({send(1, 1000)}) == Approx(5 + 100));
  CHECK(time_of({send(1, 1000), receive(1, 1000)}) == Approx(5 + 100));
  CHECK(time_of({send(1, 1000), send(1, 500)}) == Approx(5 + 150));
  CHECK(time_of({send(2, 1000), send(3, 1000)}) == Approx(50 + 1000));
  CHECK(time_of({receive(2, 1000), receive(3, 1000)}) == Approx(50 + 500));
  CHECK(time_of({send(2, 1000), receive(2, 1000), send(1, 1000)}) == Approx(50 + 500));
}

TEST_CASE("exchange time: where wires are fast it is the processor that is busy, more so where it is shared") {
  plan::Cluster fast = cluster();
  fast.within.bandwidth_Bps = plan::kUnlimited;
  // Copies of 1000 bytes in and out, and 10 messages sent.
  CHECK(time_of({send(1, 1000), receive(1, 1000)}, fast) == Approx(5 + 20 + 10));
  CHECK(time_of({send(0, 1000), receive(0, 1000)}, fast) == Approx(10));
  fast.cores_per_host = 1;
  CHECK(time_of({send(1, 1000), receive(1, 1000)}, fast) == Approx(5 + 60));
}

TEST_CASE("exchange time: ports and buses are shared within the host") {
  plan::Cluster other = cluster();
  other.hosts = 1;
  other.ranks_per_host = 4;
  CHECK(time_of({send(1, 1000), send(2, 1000), receive(1, 1000)}, other) == Approx(5 + 100));
  other.within.through = plan::Within::switched;
  CHECK(time_of({send(1, 1000), send(2, 1000), receive(1, 1000)}, other) == Approx(5 + 200));
  other.within.through = plan::Within::bus;
  CHECK(time_of({send(1, 1000), send(2, 1000), receive(1, 1000)}, other) == Approx(5 + 300));
}
