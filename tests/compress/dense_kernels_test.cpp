// SPDX-License-Identifier: Apache-2.0
// The kernels of low-rank and one-bit compression: the same bits with every instruction set.
#include <catch2/catch.hpp>
#include <cstring>
#include <optional>

#include "compress/low_rank/low_rank.h"
#include "compress/one_bit/one_bit.h"
#include "compress/vectors.h"
#include "device/instruction_sets.h"

using namespace shoal::compress;
using namespace testing;
using one_bit::Columns;

namespace {

// What f returns with each instruction set must be equal.
template <class F>
void require_same_bits(F f) {
  std::optional<decltype(f())> first;
  int sets = 0;
  shoal::device::for_each_instruction_set([&] {
    const auto result = f();
    const bool same = !first || std::memcmp(result.data(), first->data(), result.size() * sizeof result[0]) == 0;
    REQUIRE(same);
    first = result;
    ++sets;
  });
  REQUIRE(sets >= 1);
}

}  // namespace

TEST_CASE("dense kernels: one bit's wire, what it decodes to and what is kept have the same bits with every instruction set") {
  const auto columns = GENERATE(values({Columns::of_matrix(77, 75, 75), Columns::of_matrix(200, 16, 16),
                                        Columns::of_matrix(1, 9, 9), Columns::of_vector(5000, 512), Columns::of_vector(3, 128)}));
  const auto input = random_vector(columns.elements(), 1), residual = random_vector(columns.elements(), 2);
  std::vector<std::byte> wire(columns.wire_bytes());
  require_same_bits([&] {
    one_bit::encode(columns, {input.data(), 0.3F, residual.data()}, wire.data());
    return wire;
  });
  require_same_bits([&] {
    auto out = residual;
    one_bit::decode_add(columns, wire.data(), out.data());
    return out;
  });
  require_same_bits([&] {
    auto kept = residual;
    one_bit::keep(columns, input.data(), 0.3F, wire.data(), kept.data());
    return kept;
  });
}

TEST_CASE("dense kernels: low-rank products have the same bits with every instruction set") {
  const std::size_t rows = GENERATE(1, 6, 33), columns = GENERATE(1, 15, 16, 100, 1001);
  constexpr std::size_t kRank = 3;
  const auto matrix = random_vector(rows * columns, 1), q = random_vector(kRank * columns, 2), p = random_vector(kRank * rows, 3);
  require_same_bits([&] {
    std::vector<float> product(kRank * rows);
    low_rank::multiply({matrix.data(), 0, rows, columns}, q.data(), kRank, product.data(), rows);
    return product;
  });
  require_same_bits([&] {
    std::vector<float> product(kRank * columns);
    low_rank::multiply_transposed({matrix.data(), 0, rows, columns}, p.data(), rows, kRank, product.data());
    return product;
  });
  require_same_bits([&] {
    std::vector<float> row(columns);
    low_rank::expand(p.data(), rows, q.data(), columns, kRank, rows - 1, row.data());
    return row;
  });
}
