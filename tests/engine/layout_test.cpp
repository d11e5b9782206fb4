// SPDX-License-Identifier: Apache-2.0
#include "engine/layout.h"

#include <array>
#include <catch2/catch.hpp>

#include "algorithms/algorithms.h"

using namespace shoal;
using namespace shoal::engine;
using plan::Collective;

namespace {

struct Made {
  plan::Plan plan;
  Layout layout;
};

// One slice, int8, `count` elements a block, buffers at `in` and `out`.
Made make(Collective collective, const char* algorithm, std::int32_t world, std::int32_t rank, std::int32_t root,
          std::size_t count, std::byte* in, std::byte* out, std::shared_ptr<const Uneven> uneven = nullptr) {
  const plan::Plan plan = algorithms::find(collective, algorithm)->build({.world = {world}, .rank = {rank}, .root = {root}});
  const Call call{.collective = collective,
                  .input = in,
                  .output = out,
                  .count = {count},
                  .type = DataType::int8,
                  .root = {root},
                  .uneven = std::move(uneven)};
  return {plan, Layout(call, plan, make_slicing(call.count, call.type, plan.chunks, {1 << 20}))};
}

}  // namespace

TEST_CASE("layout: a buffer that holds one block starts with this rank's, one that holds all with block 0") {
  std::array<std::byte, 64> in{}, out{};
  const Made gather = make(Collective::all_gather, "ring", 4, 2, 0, 5, in.data(), out.data());
  CHECK(gather.layout.input(2, 0).at == in.data());
  CHECK(gather.layout.input(2, 0).elements == 5);
  CHECK(gather.layout.output(3, 0).at == out.data() + 15);

  const Made scatter = make(Collective::reduce_scatter, "ring", 4, 2, 0, 5, in.data(), out.data());
  CHECK(scatter.layout.input(3, 0).at == in.data() + 15);
  CHECK(scatter.layout.output(2, 0).at == out.data());

  const Made root = make(Collective::gather, "linear", 4, 2, 2, 5, in.data(), out.data());
  CHECK(root.layout.input(2, 0).at == in.data());
  CHECK(root.layout.output(3, 0).at == out.data() + 15);
  const Made other = make(Collective::scatter, "linear", 4, 3, 2, 5, nullptr, out.data());
  CHECK(other.layout.output(3, 0).at == out.data());

  const Made everything = make(Collective::all_to_all, "pairwise", 4, 1, 0, 5, in.data(), out.data());
  CHECK(everything.layout.input(3, 0).at == in.data() + 15);
  CHECK(everything.layout.output(2, 0).at == out.data() + 10);
}

TEST_CASE("layout: chunks of a vector differ by at most one element, and a slot is as long as the chunk of its number") {
  std::array<std::byte, 64> in{}, out{}, scratch{};
  const Made ring = make(Collective::all_reduce, "ring", 4, 0, 0, 11, in.data(), out.data());
  CHECK(ring.layout.input(0, 0).elements == 3);
  CHECK(ring.layout.input(3, 0).elements == 2);
  CHECK(ring.layout.input(3, 0).at == in.data() + 9);
  CHECK(ring.layout.slot(scratch.data(), 2, 0).elements == 3);
  CHECK(ring.layout.slot(scratch.data(), 7, 0).elements == 2);
  CHECK(ring.layout.slot_bytes() == 64);  // whole cache lines
  CHECK(ring.layout.contiguous(plan::Buffer::output));
  CHECK_FALSE(ring.layout.contiguous(plan::Buffer::scratch));
}

TEST_CASE("layout: blocks of different lengths lie at their displacements") {
  std::array<std::byte, 64> in{}, out{};
  auto uneven = std::make_shared<Uneven>();
  uneven->input = {{3, 0, 7}, {10, 13, 20}};
  uneven->output = {{1, 0, 2}, {0, 5, 6}};
  const Made made = make(Collective::all_to_all_v, "pairwise", 3, 0, 0, 7, in.data(), out.data(), uneven);
  CHECK(made.layout.input(0, 0).at == in.data() + 10);
  CHECK(made.layout.input(1, 0).elements == 0);
  CHECK(made.layout.input(2, 0).at == in.data() + 20);
  CHECK(made.layout.input(2, 0).elements == 7);
  CHECK(made.layout.output(2, 0).at == out.data() + 6);
  CHECK(made.layout.output(2, 0).elements == 2);
}
