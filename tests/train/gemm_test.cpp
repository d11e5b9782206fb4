// SPDX-License-Identifier: Apache-2.0
#include "train/nn/gemm.h"

#include <catch2/catch.hpp>
#include <stdexcept>
#include <vector>

namespace shoal::train {
namespace {

using Cells = std::vector<float>;
const Cells kA{1, 2, 3, 4, 5, 6};   // 2 x 3, or 3 x 2
const Cells kB{1, 0, 2, 1, 0, -1};  // 3 x 2, or 2 x 3

TEST_CASE("gemm: plain and transposed products of small integers are exact") {
  Cells c(4, 100.0F);
  gemm(Matrix(kA, 2, 3), Matrix(kB, 3, 2), Into::overwrite, c);
  CHECK(c == Cells{5, -1, 14, -1});
  gemm(Matrix(kA, 2, 3), transpose(Matrix(kB, 2, 3)), Into::overwrite, c);
  CHECK(c == Cells{7, -2, 16, -2});
  gemm(transpose(Matrix(kA, 3, 2)), Matrix(kB, 3, 2), Into::add, c);  // + {{7, -2}, {10, -2}}
  CHECK(c == Cells{14, -4, 26, -4});
}

TEST_CASE("gemm: columns of a wider matrix are used in place") {
  Cells c(4);
  gemm(Matrix(kA, 2, 3).columns_from(1, 2), Matrix(kB, 2, 3).columns_from(0, 2), Into::overwrite,
       c);  // {{2,3},{5,6}} {{1,0},{1,0}}
  CHECK(c == Cells{5, 0, 11, 0});
  CHECK_THROWS_AS(Matrix(kA, 2, 3).columns_from(2, 2), std::logic_error);
}

TEST_CASE("gemm: an empty inner dimension is a zero product") {
  Cells c{1, 2, 3, 4};
  gemm(Matrix({}, 2, 0), Matrix({}, 0, 2), Into::add, c);
  CHECK(c == Cells{1, 2, 3, 4});
  gemm(Matrix({}, 2, 0), Matrix({}, 0, 2), Into::overwrite, c);
  CHECK(c == Cells(4));
}

TEST_CASE("gemm: shapes that do not fit are a programmer's error") {
  Cells c(4);
  CHECK_THROWS_AS(gemm(Matrix(kA, 2, 3), Matrix(kB, 2, 3), Into::overwrite, c), std::logic_error);
  CHECK_THROWS_AS(gemm(Matrix(kA, 3, 2), Matrix(kB, 2, 3), Into::overwrite, c), std::logic_error);
  CHECK_THROWS_AS(Matrix(kA, 2, 2), std::logic_error);
}

TEST_CASE("gemm: the library of this build passes the program's own check") { CHECK_NOTHROW(check_gemm()); }

}  // namespace
}  // namespace shoal::train
