// SPDX-License-Identifier: Apache-2.0
// Matrix products: a thin face on cblas_sgemm. Row-major float32, single-threaded (one rank, one core). Pure functions over the
// caller's memory; any thread.
#pragma once

#include <cstddef>
#include <span>

namespace shoal::train {

// A (rows, columns) matrix as stored, `stride` cells from row to row; `transposed` says that its transpose is meant.
struct Matrix {
  Matrix(std::span<const float> cells, std::size_t rows, std::size_t columns);

  std::size_t height() const { return transposed ? columns : rows; }
  std::size_t width() const { return transposed ? rows : columns; }
  // The columns [first, first + count) of a matrix that is not transposed.
  Matrix columns_from(std::size_t first, std::size_t count) const;

  std::span<const float> cells;
  std::size_t rows;
  std::size_t columns;
  std::size_t stride;
  bool transposed = false;
};

Matrix transpose(Matrix matrix);

enum class Into { overwrite, add };

// c (a.height, b.width) = or += a b. The shapes must fit; an empty product over the inner dimension is zero.
void gemm(const Matrix& a, const Matrix& b, Into mode, std::span<float> c);

// Compares small products with sums done by hand: which library the loader bound is not known before run time. Throws Error
// (Exit::usage) when a result is wrong. Call once, before the first gemm.
void check_gemm();

}  // namespace shoal::train
