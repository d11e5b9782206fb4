// SPDX-License-Identifier: Apache-2.0
// Messages, bytes and rounds against the formulas, by equality. The table of all-reduces (unit: one vector) has two readings:
// unchunked algorithms are counted a round, chunked ones a whole collective.
#include "plan/counters.h"

#include <bit>
#include <catch2/catch.hpp>

#include "engine/slicing.h"
#include "plan/all_plans.h"
#include "plan/builder.h"
#include "plan/simulator/lengths.h"

using namespace shoal;
using namespace shoal::plan;

namespace {

Counters counted(Collective collective, std::string_view name, std::int32_t world, std::size_t bytes) {
  const algorithms::Algorithm* algorithm = algorithms::find(collective, name);
  REQUIRE(algorithm != nullptr);
  const std::vector<Plan> plans = plans_of(*algorithm, world);
  Result<Counters> counters = count(plans, {bytes});
  INFO(counters.status().text());
  REQUIRE(counters.is_ok());
  return counters.take();
}
Counters all_reduce(std::string_view name, std::int32_t world, std::size_t bytes) {
  return counted(Collective::all_reduce, name, world, bytes);
}

}  // namespace

TEST_CASE("counters: the comparison table of all-reduces, by equality") {
  for (const std::int32_t world : {4, 8, 64, 1024}) {
    INFO("world " << world);
    const std::uint64_t p = static_cast<std::uint64_t>(world), lg = static_cast<std::uint64_t>(std::bit_width(p)) - 1;
    const std::uint64_t n = p;  // a byte a chunk

    // A round of the unchunked algorithms.
    const Counters server = all_reduce("parameter_server", world, n);
    CHECK(server.rounds.size() == 2);
    for (const Counters::Round& round : server.rounds) {
      CHECK(round.peak_node == (p - 1) * n);
      CHECK(round.total == (p - 1) * n);
    }
    const Counters sequential = all_reduce("sequential", world, n);
    CHECK(sequential.rounds.size() == p);
    for (const Counters::Round& round : sequential.rounds) {
      CHECK(round.peak_node == (p - 1) * n);
      CHECK(round.total == (p - 1) * n);
    }
    CHECK(sequential.signals == p * (p - 1));
    const Counters parallel = all_reduce("all_pairs", world, n);
    CHECK(parallel.rounds.size() == 1);
    CHECK(parallel.rounds[0].peak_node == (p - 1) * n);
    CHECK(parallel.rounds[0].total == p * (p - 1) * n);
    const Counters whole_ring = all_reduce("whole_ring", world, n);
    CHECK(whole_ring.rounds.size() == p - 1);
    const Counters doubling = all_reduce("recursive_doubling", world, n);
    CHECK(doubling.rounds.size() == lg);
    for (const Counters* unchunked : {&whole_ring, &doubling})
      for (const Counters::Round& round : unchunked->rounds) {
        CHECK(round.peak_node == n);
        CHECK(round.total == p * n);
      }

    // The whole collective of the chunked ones.
    const Counters ring = all_reduce("ring", world, n);
    CHECK(ring.rounds.size() == 2 * (p - 1));
    const Counters halving = all_reduce("halving_doubling", world, n);
    CHECK(halving.rounds.size() == 2 * lg);
    for (const Counters* chunked : {&ring, &halving}) {
      CHECK(chunked->peak_node == 2 * (p - 1) * (n / p));
      CHECK(chunked->total == 2 * (p - 1) * n);
      for (const Counters::Node& node : chunked->nodes) {
        CHECK(node.sent == 2 * (p - 1) * (n / p));
        CHECK(node.received == node.sent);
        CHECK(node.reduced == (p - 1) * (n / p));
      }
    }
  }
}

TEST_CASE("counters: messages of uneven chunks add up, and empty ones are not sent") {
  for (std::int32_t p = 2; p <= 9; ++p)
    for (const std::size_t n : {1, 2, 7, 9, 100}) {
      const Counters ring = all_reduce("ring", p, n);
      CHECK(ring.total == 2 * static_cast<std::uint64_t>(p - 1) * n);
      const std::uint64_t full = std::min<std::uint64_t>(n, static_cast<std::uint64_t>(p));
      CHECK(ring.messages == 2 * static_cast<std::uint64_t>(p - 1) * full);
    }
  CHECK(all_reduce("ring", 5, 0).messages == 0);
}

TEST_CASE("counters: a world of one sends nothing") {
  for (const algorithms::Algorithm& algorithm : algorithms::all()) {
    const Counters one = counted(algorithm.collective, algorithm.name, 1, 12);
    INFO(algorithm.name);
    CHECK(one.messages == 0);
    CHECK(one.rounds.empty());
  }
}

TEST_CASE("counters: a barrier is signals, without rounds or bytes") {
  const Counters barrier = counted(Collective::barrier, "dissemination", 8, 0);
  CHECK(barrier.signals == 3 * 8);
  CHECK(barrier.messages == 0);
  CHECK(barrier.rounds.empty());
}

TEST_CASE("counters: a signal hands its sender's round on") {
  // 0 sends to 1; 1 signals 2; 2 sends to 0: rounds 1 and 2.
  std::vector<Plan> plans(3);
  LaneBuilder lanes[3];
  lanes[0].send(fixed(1), input(fixed(0)));
  lanes[0].recv(fixed(2), output(fixed(0)));
  lanes[1].recv(fixed(0), output(fixed(0)));
  lanes[1].signal(fixed(2));
  lanes[2].wait(fixed(1));
  lanes[2].send(fixed(0), input(fixed(0)));
  for (std::int32_t r = 0; r < 3; ++r)
    plans[static_cast<std::size_t>(r)] = {.algorithm = "relay", .world = {3}, .rank = {r}, .lanes = {lanes[r].take()}};
  const Result<Counters> counters = count(plans, {10});
  REQUIRE(counters.is_ok());
  REQUIRE(counters->rounds.size() == 2);
  CHECK(counters->rounds[0].total == 10);
  CHECK(counters->rounds[1].total == 10);
  CHECK(counters->signals == 1);
  CHECK(counters->nodes[1].signals_sent == 1);

  plans[2].lanes[0].loops[0].steps.pop_back();  // now rank 0 waits for ever
  const Result<Counters> stuck = count(plans, {10});
  REQUIRE(!stuck.is_ok());
  CHECK(stuck.status().text() == "relay in a world of 3: rank 0 waits for ever in: recv from 2: -> output[0]");
}

TEST_CASE("counters: scratch and shared slots in bytes") {
  const Counters whole = all_reduce("sequential", 4, 100);
  CHECK(whole.scratch == 200);
  CHECK(whole.shared == 0);
  const Counters one_shot = all_reduce("one_shot", 4, 100);
  CHECK(one_shot.shared == 200);  // two sets of one slot
  for (const Counters::Node& node : one_shot.nodes) CHECK(node.direct_read == 300);
}

TEST_CASE("counters: bytes must be whole elements") {
  const std::vector<Plan> plans = plans_of(*algorithms::find(Collective::all_reduce, "ring"), 2);
  const Result<Counters> refused = count(plans, {10}, 4);
  REQUIRE(!refused.is_ok());
  CHECK(refused.status().text() == "10 bytes are not whole elements of 4 bytes");
  // Elements are not cut: of 3 elements one rank's chunk has 2.
  const Result<Counters> counters = count(plans, {12}, 4);
  REQUIRE(counters.is_ok());
  CHECK(counters->nodes[0].sent + counters->nodes[1].sent == 24);
  CHECK(counters->nodes[0].sent % 4 == 0);
}

TEST_CASE("lengths: a set is as long as its chunks together") {
  for (const std::int32_t chunks : {1, 2, 3, 7})
    for (const std::uint64_t elements : {0, 1, 6, 21, 22, 23})
      for (const std::int32_t wrap : {0, 21})
        for (const std::int32_t run : {1, 2, 3, 20})
          for (const std::int32_t pitch : {1, 3, 5})
            for (std::int32_t size = 1; size <= 9; ++size)
              for (std::int32_t first = 0; first < 21; first += 4) {
                const Chunk set{Buffer::output, fixed(first), size, std::min(run, size), pitch, wrap};
                std::uint64_t sum = 0;
                for (std::int32_t t = 0; t < size; ++t) sum += chunk_range({elements}, chunks, set.at(t, 0) % chunks).length();
                if (Lengths(elements, chunks).of(set, 0) != sum)
                  FAIL(elements << " elements in " << chunks << " chunks: " << describe(set, 0));
              }
}

TEST_CASE("lengths: slices cover all elements in messages that fit") {
  for (const std::uint64_t count : {1, 2, 63, 64, 65, 1000, 100003})
    for (const std::int32_t chunks : {1, 2, 3, 8})
      for (const std::int32_t widest : {1, 4})
        for (const std::uint64_t message : {4, 64, 256, 65536}) {
          const Slices slices = cut(count, 4, chunks, widest, message);
          std::uint64_t sum = 0;
          for (std::uint64_t k = 0; k < slices.slices; ++k) {
            sum += slices.length(k);
            const std::uint64_t longest = chunk_range({slices.length(k)}, chunks, 0).length();
            const std::uint64_t fits = static_cast<std::uint64_t>(widest) * 4;
            CHECK(longest * fits <= std::max(message, fits));
          }
          CHECK(sum == count);
          // As the engine cuts, whose limit is of one chunk.
          const Bytes part{message / static_cast<std::uint64_t>(widest)};
          const engine::Slicing engine = engine::make_slicing({count}, DataType::float32, chunks, part);
          CHECK(slices.slice == engine.slice);
          CHECK(slices.slices == engine.slices);
          const Slices exact = cut_exactly(count, 4, chunks, widest, message);
          CHECK(exact.slice == engine::make_fixed_slicing({count}, DataType::float32, chunks, part).slice);
          CHECK(exact.slices == engine::make_fixed_slicing({count}, DataType::float32, chunks, part).slices);
        }
  CHECK(cut(100, 4, 3, 2, 0).slices == 1);
  CHECK(cut(0, 4, 3, 2, 64).slices == 0);
  CHECK(cut(1 << 20, 4, 4, 1, 64 << 10).slices == 16);
}
