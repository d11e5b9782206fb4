// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "tools/plan/prediction.h"
#include "tools/plan/program_text.h"
#include "tools/plan/units.h"

using namespace shoal;
using namespace shoal::plan_tool;
using plan::Collective;

TEST_CASE("program text: loops stay loops, and moving indices are formulas") {
  const auto ring = algorithms::find(Collective::all_reduce, "ring")->build({.world = {4}, .rank = {1}});
  CHECK(program_text(ring) ==
        "  send to 2: input[0]\n"
        "  for i in 0..1\n"
        "    recv_reduce_send from 0 to 2: input[(3 - i) mod 4]\n"
        "  recv_reduce_send from 0 to 2: input[1] -> output[1] final\n"
        "  for i in 0..1\n"
        "    recv_copy_send from 0 to 2: -> output[(0 - i) mod 4]\n"
        "  recv from 0: -> output[2]\n");
  CHECK(properties(ring) == "4 chunks, 2 credits, by reference");
}

TEST_CASE("program text: formulas with base, scale and stride") {
  CHECK(text_of(plan::fixed(3), true) == "3");
  CHECK(text_of(plan::rotating(2, -1, 4), true) == "(2 - i) mod 4");
  CHECK(text_of(plan::rotating(2, -1, 4), false) == "2");
  CHECK(text_of(plan::Rotating{1, 2, 8, 3, 5}, true) == "5 + 3 ((1 + 2 i) mod 8)");
  CHECK(text_of(plan::window(plan::Buffer::output, plan::rotating(0, 2, 8), 2), true) == "output[(0 + 2 i) mod 8, 2 chunks]");
  CHECK(text_of(plan::every(plan::Buffer::scratch, plan::rotating(0, 1, 4), 2, 4, 8), true) ==
        "scratch[(0 + i) mod 4, 2 chunks by 1 every 4 mod 8]");
}

TEST_CASE("units: as people read them") {
  CHECK(seconds_text(0) == "0 s");
  CHECK(seconds_text(1.5e-9) == "1.50 ns");
  CHECK(seconds_text(12.34e-6) == "12.3 us");
  CHECK(seconds_text(456.7e-3) == "457 ms");
  CHECK(seconds_text(0.9999) == "1.00 s");
  CHECK(bytes_text(0) == "0 B");
  CHECK(bytes_text(65536) == "64 KiB");
  CHECK(bytes_text(1.5 * (1 << 20)) == "1.5 MiB");
  CHECK(gigabytes_text(12.345e9) == "12.35 GB/s");
  CHECK(share_text(6, 4) == "1.5 n");
  CHECK(share_text(4, 4) == "n");
  CHECK(share_text(0, 4) == "0");
  CHECK(grouped(7) == "7");
  CHECK(grouped(1234567) == "1,234,567");
}

TEST_CASE("sizes: a call's bytes are the vector's, or those of all blocks together") {
  CHECK(*simulator_bytes(Collective::all_reduce, 8, 64) == 64);
  CHECK(*simulator_bytes(Collective::all_gather, 8, 64) == 8);
  CHECK(*simulator_bytes(Collective::all_gather, 3, 64) == 20);  // whole elements
  CHECK(*simulator_bytes(Collective::barrier, 8, 63) == 0);
  CHECK_FALSE(simulator_bytes(Collective::all_reduce, 8, 63).is_ok());
  CHECK_FALSE(simulator_bytes(Collective::all_gather, 8, 28).is_ok());
  CHECK(*simulator_bytes(Collective::all_gather, 8, 0) == 0);
}

TEST_CASE("bus bandwidth: nccl-tests' factors") {
  CHECK(bus_factor(Collective::all_reduce, 4) == 1.5);
  CHECK(bus_factor(Collective::all_gather, 4) == 0.75);
  CHECK(bus_factor(Collective::reduce_scatter, 4) == 0.75);
  CHECK(bus_factor(Collective::broadcast, 4) == 1);
  CHECK(bus_factor(Collective::reduce, 4) == 1);
}

TEST_CASE("groups: those of a cluster with equally full hosts, unless one is given") {
  const Machine machine;
  const auto group_of = [&](std::int32_t world, std::int32_t given) {
    Target target{.collective = Collective::all_reduce, .world = world, .group = given};
    REQUIRE(cluster_of(machine, target).is_ok());
    return target.group;
  };
  CHECK(group_of(16, -1) == 8);
  CHECK(group_of(4, -1) == 4);
  CHECK(group_of(12, -1) == -1);
  CHECK(group_of(16, 4) == 4);
  CHECK(group_of(16, 0) == 0);
}
