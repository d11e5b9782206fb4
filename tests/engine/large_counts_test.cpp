// SPDX-License-Identifier: Apache-2.0
// Field case FC-18 without the memory: sizes, offsets and cuts of calls with 2^33 elements and more. Addresses are only computed.
// (tests/api/uneven_test.cpp has a run with more than 2^31 elements, to be asked for by name.)
#include <catch2/catch.hpp>

#include "algorithms/algorithms.h"
#include "engine/execution.h"
#include "engine/layout.h"
#include "engine/slicing.h"
#include "plan/plan.h"

using namespace shoal;
using namespace shoal::engine;
using plan::Collective;

namespace {

constexpr std::size_t kMany = (std::size_t{1} << 33) + 11;
constexpr std::size_t kAround[] = {(std::size_t{1} << 31) - 1, std::size_t{1} << 31, (std::size_t{1} << 31) + 1,
                                   (std::size_t{1} << 32) - 1, std::size_t{1} << 32, (std::size_t{1} << 32) + 1};

std::byte* address(std::size_t at) { return reinterpret_cast<std::byte*>(at); }  // never looked at
constexpr std::size_t kInput = std::size_t{1} << 44, kOutput = std::size_t{1} << 45;

Layout layout(Collective collective, const char* algorithm, std::int32_t world, std::int32_t rank, std::size_t count,
              std::shared_ptr<const Uneven> uneven = nullptr) {
  const plan::Plan plan = algorithms::find(collective, algorithm)->build({.world = {world}, .rank = {rank}});
  const Call call{.collective = collective,
                  .input = address(kInput),
                  .output = address(kOutput),
                  .count = {count},
                  .type = DataType::float64,
                  .uneven = std::move(uneven)};
  return Layout(call, plan, make_slicing(call.count, call.type, plan.chunks, {std::size_t{1} << 40}));  // one slice
}

}  // namespace

TEST_CASE("FC-18: bytes, chunks and parts of 2^33 elements") {
  CHECK(size_of({kMany}, DataType::float64).value == 8 * kMany);
  for (const std::int32_t chunks : {1, 2, 7, 64}) {
    std::size_t end = 0;
    for (std::int32_t c = 0; c < chunks; ++c) {
      const plan::Range range = plan::chunk_range({kMany}, chunks, c);
      CHECK(range.begin == end);
      CHECK(range.length() - kMany / static_cast<std::size_t>(chunks) <= 1);  // no rank has more than one element more
      end = range.end;
    }
    CHECK(end == kMany);
  }
  CHECK(part_limit(3, {kMany}).value == kMany / 3);
}

TEST_CASE("FC-18: slices of 2^33 elements meet without gaps, also at 2^31 and 2^32") {
  for (const DataType type : {DataType::int8, DataType::float64})
    for (const std::int32_t chunks : {1, 3, 8})
      for (const bool fixed : {false, true}) {
        const Slicing s = (fixed ? make_fixed_slicing : make_slicing)({kMany}, type, chunks, {65536});
        INFO(name_of(type) << ", " << chunks << " chunks, fixed " << fixed);
        CHECK((s.slices - 1) * s.slice < kMany);
        CHECK(s.slices * s.slice >= kMany);
        CHECK(s.longest(chunks) * element_bytes(type) <= 65536);
        CHECK(s.range(0, chunks, 0).begin == 0);
        CHECK(s.range(s.slices - 1, chunks, chunks - 1).end == kMany);
        for (const std::size_t element : kAround) {
          const std::size_t k = element / s.slice;
          CHECK(s.range(k - 1, chunks, chunks - 1).end == s.range(k, chunks, 0).begin);
          int holders = 0;
          for (std::int32_t c = 0; c < chunks; ++c) {
            const plan::Range range = s.range(k, chunks, c);
            holders += range.begin <= element && element < range.end ? 1 : 0;
          }
          CHECK(holders == 1);
        }
      }
}

TEST_CASE("FC-18: chunks, blocks and displacements lie beyond 2^33 elements") {
  const Layout vector = layout(Collective::all_reduce, "ring", 4, 0, kMany);
  const plan::Range last = plan::chunk_range({kMany}, 4, 3);
  CHECK(vector.input(3, 0).at == address(kInput + 8 * last.begin));
  CHECK(vector.input(3, 0).elements == last.length());
  CHECK(vector.slot_bytes() == (8 * plan::chunk_range({kMany}, 4, 0).length() + 63) / 64 * 64);
  CHECK(vector.slot(address(kOutput), 3, 0).at == address(kOutput + 3 * vector.slot_bytes()));

  CHECK(layout(Collective::all_gather, "ring", 4, 2, kMany).output(3, 0).at == address(kOutput + 8 * 3 * kMany));
  CHECK(layout(Collective::reduce_scatter, "ring", 4, 2, kMany).input(3, 0).at == address(kInput + 8 * 3 * kMany));
  CHECK(layout(Collective::all_to_all, "pairwise", 4, 2, kMany).output(3, 0).elements == kMany);

  auto uneven = std::make_shared<Uneven>();
  uneven->input = {{1, 2, kMany}, {0, kMany, 2 * kMany}};
  uneven->output = {{1, kMany, 3}, {0, 7, 2 * kMany + 7}};
  const Layout blocks = layout(Collective::all_to_all_v, "pairwise", 3, 0, kMany, uneven);
  CHECK(blocks.input(2, 0).at == address(kInput + 8 * 2 * kMany));
  CHECK(blocks.input(2, 0).elements == kMany);
  CHECK(blocks.output(1, 0).elements == kMany);
  CHECK(blocks.output(2, 0).at == address(kOutput + 8 * (2 * kMany + 7)));
}
