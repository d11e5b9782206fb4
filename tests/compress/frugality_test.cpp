// SPDX-License-Identifier: Apache-2.0
// Dense compressors, whose lengths do not depend on the data, allocate on a tensor's first call only.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>

#include "compress/allocations.h"
#include "compress/vectors.h"

using namespace shoal::compress;
using namespace testing;

namespace {

// Allocations of a call in a world of one, without those of its collectives.
std::size_t allocations_of_call(Compressor& compressor, const std::vector<float>& input, std::vector<float>& output) {
  const Place place{{1}, {0}, [](const shoal::engine::Call& /*call*/) { return 1e-6; }};
  std::size_t before = allocations();
  Stages stages = compressor.all_reduce({input.data(), output.data(), input.size()}, place);
  std::size_t made = allocations() - before;
  for (;;) {
    before = allocations();
    const auto next = stages.next();
    made += allocations() - before;
    if (!next->has_value()) return made;
    run_alone(**next);
  }
}

}  // namespace

TEST_CASE("Dense compressors and codecs allocate nothing after a tensor's first call") {
  const auto shape = GENERATE(Shape{4000, 1}, Shape{200 * 20, 200});
  const auto input = random_vector(shape.elements, 1);
  std::vector<float> output(shape.elements);
  constexpr std::array<std::string_view, 4> kDense = {"powersgd", "onebit", "terngrad", "sign_majority"};
  for (const Kind& kind : kinds()) {
    if (kind.codec == nullptr && std::find(kDense.begin(), kDense.end(), kind.name) == kDense.end()) continue;
    CAPTURE(kind.name);
    const auto ranks = make_ranks(kind.name, "", shape, 1);
    REQUIRE(allocations_of_call(*ranks[0], input, output) > 0);
    for (int again = 0; again < 3; ++again) REQUIRE(allocations_of_call(*ranks[0], input, output) == 0);
  }
}
