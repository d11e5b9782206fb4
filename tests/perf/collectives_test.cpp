// SPDX-License-Identifier: Apache-2.0
// What the columns mean for every collective, in nccl-tests' definitions.
#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "perf/report.h"

using namespace shoal::perf;

namespace {

const Collective& get(const std::string& name) {
  const Collective* found = find_collective(name);
  REQUIRE(found != nullptr);
  return *found;
}

struct Columns {
  std::string name;
  std::uint64_t size, count;  // of 1001 bytes of int32 among 4 ranks
  double algorithm, bus;      // GB/s at 1 MiB of float among 4 ranks in 100 us
};

// 1 MiB / 100 us = 10.48576 GB/s.
const std::vector<Columns> kColumns = {
    {"all_reduce", 1000, 250, 10.48576, 15.72864},  {"all_gather", 960, 60, 10.48576, 7.86432},
    {"reduce_scatter", 960, 60, 10.48576, 7.86432}, {"broadcast", 1000, 250, 10.48576, 10.48576},
    {"reduce", 1000, 250, 10.48576, 10.48576},      {"alltoall", 960, 60, 10.48576, 7.86432},
    {"alltoallv", 960, 60, 10.48576, 7.86432},      {"gather", 960, 60, 10.48576, 7.86432},
    {"scatter", 960, 60, 10.48576, 7.86432},        {"sendrecv", 1000, 250, 10.48576, 10.48576},
    {"hypercube", 960, 60, 7.86432, 7.86432}};

}  // namespace

TEST_CASE("size, count, algbw and busbw of every collective: 4 ranks") {
  CHECK(kColumns.size() == collectives().size());
  for (const Columns& expected : kColumns) {
    CAPTURE(expected.name);
    const Collective& collective = get(expected.name);
    const Place place = {.rank = 1, .world = 4, .root = collective.rooted ? 0 : -1};
    const Extent odd = collective.extent(1001, 4, place), whole = collective.extent(1 << 20, 4, place);
    CHECK(odd.total * 4 == expected.size);
    CHECK(odd.count == expected.count);
    CHECK(whole.total * 4 == 1 << 20);
    const Measurement half = make_measurement(whole.moved * 4, 100.0, collective.bus_factor(4));
    CHECK(half.algorithm_gbs == Approx(expected.algorithm).epsilon(1e-12));
    CHECK(half.bus_gbs == Approx(expected.bus).epsilon(1e-12));
  }
  CHECK(find_collective("nosuch") == nullptr);
}

TEST_CASE("bus factors of 1, 2 and 8 ranks") {
  CHECK(get("all_reduce").bus_factor(1) == 0);
  CHECK(get("all_reduce").bus_factor(2) == 1);
  CHECK(get("all_reduce").bus_factor(8) == 1.75);
  for (const char* name : {"all_gather", "reduce_scatter", "alltoall", "alltoallv", "gather", "scatter"}) {
    CHECK(get(name).bus_factor(1) == 0);
    CHECK(get(name).bus_factor(2) == 0.5);
    CHECK(get(name).bus_factor(8) == 0.875);
  }
  for (const char* name : {"broadcast", "reduce", "sendrecv", "hypercube"})
    for (const int world : {1, 2, 8}) CHECK(get(name).bus_factor(world) == 1);
}

TEST_CASE("what is cut among ranks is cut at 16 bytes, so the smallest sizes have no elements") {
  for (const char* name : {"all_gather", "reduce_scatter", "alltoall", "gather", "scatter", "hypercube"})
    for (const std::size_t size : {1, 2, 4, 8}) {
      CAPTURE(name, size);
      const Place place = {.rank = 0, .world = 4, .root = 0};
      CHECK(get(name).extent(63, size, place).total == 0);
      CHECK(get(name).extent(64, size, place).total * size == 64);
      CHECK(get(name).extent(64 + 63, size, place).count * size == 16);
    }
}

TEST_CASE("no rank's data leave the buffer of the size column, in place or not, whatever the root") {
  for (const Collective* collective : collectives())
    for (int world = 1; world <= 8; ++world)
      for (int root = 0; root < world; ++root)
        for (int rank = 0; rank < world; ++rank) {
          const Traffic traffic;
          const Place place = {.rank = rank, .world = world, .root = root, .traffic = &traffic};
          const Extent extent = collective->extent(12345, 1, place);
          const InPlace at = collective->in_place(extent, place);
          CAPTURE(collective->name, world, root, rank);
          CHECK(at.send + extent.send <= extent.total);
          CHECK(at.receive + extent.receive <= extent.total);
          CHECK(extent.total <= 12345);
        }
}

TEST_CASE("traffic of all-to-all-v: what one sends the other receives, and the spread grows with the distance") {
  for (const double spread : {0.0, 0.5, 1.0})
    for (const int world : {1, 2, 3, 4, 7}) {
      CAPTURE(spread, world);
      const Traffic traffic = {.spread = spread, .matrix = {}, .width = 0};
      std::vector<Blocks> all;
      for (int rank = 0; rank < world; ++rank)
        all.push_back(get("alltoallv").blocks(100'000, 2, {.rank = rank, .world = world, .root = -1, .traffic = &traffic}));
      for (std::size_t a = 0; a < all.size(); ++a)
        for (std::size_t b = 0; b < all.size(); ++b) {
          CHECK(all[a].send[b] == all[b].receive[a]);
          // Where the block lies in the sender's input: behind those to lower ranks.
          const auto before = all[a].send.begin() + static_cast<std::ptrdiff_t>(b);
          CHECK(all[b].origin[a] == std::accumulate(all[a].send.begin(), before, std::size_t{0}));
          CHECK(all[a].send[b] * 2 % 16 == 0);
        }
    }
  const Traffic weighted;
  CHECK(weighted.block(6000, 2, 2, 4) == 0);
  CHECK(weighted.block(6000, 2, 3, 4) == 992);   // 1/6 of 6000, cut at 16
  CHECK(weighted.block(6000, 2, 0, 4) == 2000);  // 2/6
  CHECK(weighted.block(6000, 2, 1, 4) == 2992);  // 3/6
  CHECK(weighted.block(6000, 0, 0, 1) == 6000);  // a rank alone has nobody else
}

TEST_CASE("traffic of a file: bytes from row to column, scaled, cut at 16") {
  Traffic traffic;
  CHECK(parse_matrix("100 200 150\n\n 50 1e2 75\n300 150 200\n", 2, traffic) == "");
  CHECK(traffic.width == 3);
  CHECK(traffic.block(1, 0, 1, 3) == 400);
  CHECK(traffic.block(1, 1, 0, 3) == 96);
  CHECK(traffic.most(1, 3) == 592 + 288 + 400);  // what rank 2 sends
  for (const auto& [text, why] :
       std::vector<std::pair<std::string, std::string>>{{"", "0 rows of 0 numbers: must be a square"},
                                                        {"1 2\n", "1 rows of 2 numbers: must be a square"},
                                                        {"1 2\n3\n", "row 1 has 1 numbers, the rows before it 2"},
                                                        {"1 -2\n3 4\n", "row 0, column 1: '-2' is no number of bytes"},
                                                        {"1 2\n3 x\n", "row 1, column 1: 'x' is no number of bytes"},
                                                        {"nan 2\n3 1\n", "row 0, column 0: 'nan' is no number of bytes"}}) {
    CAPTURE(text);
    CHECK(parse_matrix(text, 1, traffic).find(why) != std::string::npos);
  }
}

TEST_CASE("variables of all-to-all-v are refused with name and value") {
  const auto read = [](const std::string& name, const std::string& value) {
    Traffic traffic;
    return read_traffic([&](const char* asked) { return asked == name ? std::optional(value) : std::nullopt; }, 4, traffic);
  };
  CHECK(read("NCCL_TESTS_ALLTOALLV_SPREAD", "0.5") == "");
  CHECK(read("NCCL_TESTS_ALLTOALLV_SPREAD", "1.5") == "NCCL_TESTS_ALLTOALLV_SPREAD 1.5: must be a number from 0 to 1");
  CHECK(read("NCCL_TESTS_ALLTOALLV_SPREAD", "far") == "NCCL_TESTS_ALLTOALLV_SPREAD far: must be a number from 0 to 1");
  CHECK(read("NCCL_TESTS_ALLTOALLV_MATRIX_SCALE", "-1").find("NCCL_TESTS_ALLTOALLV_MATRIX_SCALE -1: ") == 0);
  CHECK(read("NCCL_TESTS_ALLTOALLV_MATRIX_FILE", "/nosuch/m.txt") ==
        "NCCL_TESTS_ALLTOALLV_MATRIX_FILE /nosuch/m.txt: cannot be read: No such file or directory");
}
