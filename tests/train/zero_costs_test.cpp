// SPDX-License-Identifier: Apache-2.0
// The arithmetic of ZeRO: shards, padding, stays, formulas. FC-48, FC-49, FC-50 as far as they are arithmetic.
#include "train/parallel/zero_costs.h"

#include <catch2/catch.hpp>
#include <string>

namespace shoal::train {
namespace {

std::vector<Tensor> tensors_of(const std::vector<std::size_t>& sizes) {
  std::vector<Tensor> tensors;
  for (const std::size_t size : sizes) append(tensors, {.name = "t" + std::to_string(tensors.size()), .shape = {size}});
  return tensors;
}

std::vector<std::size_t> real_counts(const Shards& shards) {
  std::vector<std::size_t> counts;
  for (std::size_t rank = 0; rank < shards.ranks; ++rank) counts.push_back(shards.real(shards.of(rank)).count());
  return counts;
}

}  // namespace

TEST_CASE("FC-48: padding may fill several ranks") {
  CHECK(real_counts({.count = 10, .ranks = 8, .alignment = 16}) == std::vector<std::size_t>{2, 2, 2, 2, 2, 0, 0, 0});
  CHECK(real_counts({.count = 57, .ranks = 2, .alignment = 4}) == std::vector<std::size_t>{30, 27});
  CHECK(real_counts({.count = 1, .ranks = 4}) == std::vector<std::size_t>{1, 0, 0, 0});
  const std::vector<std::size_t> counts = real_counts({.count = 266240, .ranks = 768, .alignment = 1536});
  CHECK(counts[764] == 348);
  CHECK(counts[765] == 20);
  CHECK(counts[766] == 0);
  CHECK(counts[767] == 0);
}

TEST_CASE("shards of any count over any ranks cover the space once, evenly") {
  for (std::size_t ranks = 1; ranks <= 9; ++ranks)
    for (const std::size_t alignment : {1UL, 2UL, 6UL, 16UL})
      for (std::size_t count = 0; count <= 40; ++count) {
        const Shards shards{count, ranks, alignment};
        CAPTURE(ranks, alignment, count);
        REQUIRE(shards.padded() >= count);
        REQUIRE(shards.padded() < count + ranks * alignment);
        REQUIRE(shards.padded() % ranks == 0);
        REQUIRE(shards.padded() % alignment == 0);
        std::size_t at = 0, real = 0;
        for (std::size_t rank = 0; rank < ranks; ++rank) {
          REQUIRE(shards.of(rank).begin == at);
          at = shards.of(rank).end;
          real += shards.real(shards.of(rank)).count();
        }
        REQUIRE(at == shards.padded());
        REQUIRE(real == count);
      }
}

TEST_CASE("FC-49: empty tensors leave their neighbours' runs alone") {
  const std::vector<Tensor> tensors = tensors_of({8, 0, 24});
  const Shards shards{.count = 32, .ranks = 2};
  CHECK(runs_in(tensors, shards.of(0)) == std::vector<TensorRun>{{0, 0, 0, 8}, {2, 0, 8, 8}});
  CHECK(runs_in(tensors, shards.of(1)) == std::vector<TensorRun>{{2, 8, 16, 16}});
  CHECK(runs_in(tensors_of({0, 5}), {0, 5}) == std::vector<TensorRun>{{1, 0, 0, 5}});
  CHECK(runs_in(tensors_of({5, 0}), {0, 5}) == std::vector<TensorRun>{{0, 0, 0, 5}});
  CHECK(runs_in(tensors_of({0, 0}), {0, 0}).empty());
  CHECK(runs_in(tensors_of({3}), Shards{.count = 3, .ranks = 8}.of(5)).empty());
}

TEST_CASE("runs of all ranks are every element of every tensor once") {
  for (const std::vector<std::size_t>& sizes : {std::vector<std::size_t>{7, 0, 1, 12}, {1}, {0, 30, 2}, {5, 5, 5, 5}}) {
    const std::vector<Tensor> tensors = tensors_of(sizes);
    const std::size_t count = tensors.back().offset + tensors.back().count;
    for (std::size_t ranks = 1; ranks <= 8; ++ranks) {
      std::vector<std::size_t> next(sizes.size());
      for (std::size_t rank = 0; rank < ranks; ++rank)
        for (const TensorRun& run : runs_in(tensors, Shards{count, ranks}.of(rank))) {
          REQUIRE(run.first == next[run.tensor]);
          REQUIRE(run.at == tensors[run.tensor].offset + run.first);
          next[run.tensor] += run.count;
        }
      REQUIRE(next == sizes);
    }
  }
}

TEST_CASE("FC-50: a group that two units use stays from the first to the last, once a direction") {
  const std::vector<std::vector<std::size_t>> apart{{0}, {1}, {2}};
  CHECK(stays_of(apart) == std::vector<Stay>{{0, 0, 0}, {1, 1, 1}, {2, 2, 2}, {2, 3, 3}, {1, 4, 4}, {0, 5, 5}});
  const std::vector<std::vector<std::size_t>> tied{{0}, {1}, {2, 0}};
  CHECK(stays_of(tied) == std::vector<Stay>{{0, 0, 2}, {1, 1, 1}, {2, 2, 2}, {2, 3, 3}, {0, 3, 5}, {1, 4, 4}});
}

TEST_CASE("formulas of ZeRO: bytes a parameter, largest models, elements sent") {
  const auto bytes = [](std::size_t stage, std::size_t ranks) {
    return ZeroCosts{.stage = stage, .parameters = 1 << 20, .trained = 1 << 20, .ranks = ranks}.bytes();
  };
  constexpr double kY = 1 << 20;
  CHECK(static_cast<double>(bytes(0, 64)) / kY == 16);
  CHECK(static_cast<double>(bytes(1, 64)) / kY == 4.1875);
  CHECK(static_cast<double>(bytes(2, 64)) / kY == 2.21875);
  CHECK(static_cast<double>(bytes(3, 64)) / kY == 0.25);
  CHECK(bytes(1, 1) == bytes(0, 1));
  CHECK(bytes(3, 1) == bytes(0, 1));

  const auto sent = [](std::size_t stage, std::size_t micro_batches, std::size_t trained, std::size_t replicas) {
    return ZeroCosts{.stage = stage,
                     .parameters = 1200,
                     .trained = trained,
                     .ranks = 4,
                     .replicas = replicas,
                     .word = 1,
                     .micro_batches = micro_batches}
        .sent()
        .all();
  };
  for (const std::size_t stage : {0UL, 1UL, 2UL}) CHECK(sent(stage, 1, 1200, 1) == 2 * 1200 * 3 / 4);
  CHECK(sent(3, 1, 1200, 1) == 3 * 1200 * 3 / 4);
  CHECK(sent(0, 5, 1200, 1) == sent(0, 1, 1200, 1));
  CHECK(sent(1, 5, 1200, 1) == sent(1, 1, 1200, 1));
  CHECK(sent(2, 5, 1200, 1) == 6 * 1200 * 3 / 4);
  CHECK(sent(3, 5, 1200, 1) == 15 * 1200 * 3 / 4);
  CHECK(sent(1, 1, 400, 1) == 2 * 400 * 3 / 4);
  CHECK(sent(3, 1, 400, 1) == (2 * 1200 + 400) * 3 / 4);
  // Replicas all-reduce a quarter of the model each.
  CHECK(sent(2, 1, 1200, 3) == 2 * 1200 * 3 / 4 + 2 * 300 * 2 / 3);
}

TEST_CASE("wire formats: bytes of vectors of any length") {
  CHECK(wire_bytes("", 10, 4) == 40);
  CHECK(wire_bytes("bf16", 10, 4) == 20);
  CHECK(wire_bytes("int8", 128, 4) == 130);
  CHECK(wire_bytes("int8", 129, 4) == 133);
  CHECK(wire_bytes("fp8_e4m3", 256, 4) == 260);
  CHECK(wire_bytes("int4", 33, 4) == 17 + 4);
  CHECK(wire_bytes("int4", 0, 4) == 0);
}

TEST_CASE("formulas of ZeRO++: 3 Y between nodes become 0.5 Y, nothing and 0.25 Y, and 2 Y / G bytes are held more") {
  constexpr std::size_t kY = 1 << 20;
  for (const auto& [ranks, node] : {std::pair<std::size_t, std::size_t>{4, 2}, {64, 8}, {384, 16}}) {
    const std::size_t y = kY * 3, nodes = ranks / node;
    CAPTURE(ranks, node);
    ZeroCosts plain{.stage = 3, .parameters = y, .trained = y, .ranks = ranks, .node = node};
    // A node must give (nodes - 1) / nodes of the words, each of its ranks alike.
    const std::size_t words = y / nodes * (nodes - 1) / node;
    CHECK(plain.gathered().between == 2 * 2 * words);
    CHECK(plain.scattered().between == 2 * words);
    CHECK(plain.sent().all() == 3 * 2 * (y / ranks * (ranks - 1)));
    CHECK(plain.secondary_bytes() == 0);

    ZeroCosts secondary = plain;
    secondary.secondary = true;
    CHECK(secondary.gathered().between == 2 * words);
    CHECK(secondary.sent().inside == plain.sent().inside);
    CHECK(secondary.sent().between == plain.sent().between - 2 * words);
    CHECK(secondary.secondary_bytes() == 2 * y / node);
    CHECK(secondary.bytes() == plain.bytes() + 2 * y / node);

    ZeroCosts all = secondary;
    all.weight_format = "int8";
    all.gradient_format = "int4";
    CHECK(all.gathered().between == words + 2 * words / 128);
    CHECK(all.scattered().between == words / 2 + 2 * words / 32);
    const double left = static_cast<double>(all.sent().between) / static_cast<double>(plain.sent().between);
    CHECK(left == Approx((0.5 + 0.25 + 1.0 / 128 + 1.0 / 32) / 3));
    all.micro_batches = 4;
    CHECK(all.gathered().between == words + 2 * words / 128);
    CHECK(all.scattered().between == 4 * (words / 2 + 2 * words / 32));
  }
  // One node: nothing leaves it.
  CHECK(ZeroCosts{.stage = 3, .parameters = 1200, .trained = 1200, .ranks = 4, .node = 4}.sent().between == 0);
  CHECK(ZeroCosts{.stage = 3, .parameters = 1200, .trained = 1200, .ranks = 4}.sent().between == 0);
}

}  // namespace shoal::train
