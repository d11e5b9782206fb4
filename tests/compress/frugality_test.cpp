// SPDX-License-Identifier: Apache-2.0
// Compressors allocate on a tensor's first calls only: what is counted is every operator new of the process.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <new>

#include "compress/vectors.h"

namespace {

std::size_t allocations = 0;

}  // namespace

// Not inlined: GCC would take free for the wrong partner of what it sees as a new.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes > 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t /*bytes*/) noexcept { std::free(memory); }

using namespace shoal::compress;
using namespace testing;

namespace {

// A world of one, whose collectives are copies. Returns the allocations of the call.
std::size_t call(Compressor& compressor, const std::vector<float>& input, std::vector<float>& output) {
  const std::size_t before = allocations;
  {
    Stages stages = compressor.all_reduce({input.data(), output.data(), input.size()}, {{1}, {0}, {}});
    for (auto next = stages.next(); next->has_value(); next = stages.next()) {
      const shoal::engine::Call& each = **next;
      const std::size_t bytes = size_of(each.count, each.type).value;
      if (each.input != each.output && bytes > 0) std::memcpy(each.output, each.input, bytes);
    }
  }
  return allocations - before;
}

}  // namespace

TEST_CASE("Dense compressors allocate nothing after the first call") {
  const auto shape = GENERATE(Shape{4000, 1}, Shape{200 * 20, 200});
  const auto input = random_vector(shape.elements, 1);
  std::vector<float> output(shape.elements);
  for (const char* name : {"powersgd", "onebit", "terngrad", "sign_majority", "fp16"}) {
    CAPTURE(name);
    const auto ranks = make_ranks(name, "", shape, 1);
    REQUIRE(call(*ranks[0], input, output) > 0);
    for (int again = 0; again < 3; ++again) REQUIRE(call(*ranks[0], input, output) == 0);
  }
}
