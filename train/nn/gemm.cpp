// SPDX-License-Identifier: Apache-2.0
#include "train/nn/gemm.h"

#include <cblas.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "train/error.h"

namespace shoal::train {
namespace {

std::vector<float> small_integers(std::size_t count, int seed) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>((static_cast<int>(i) * 7 + seed) % 11 - 5);
  return values;
}

float cell(const Matrix& m, std::size_t row, std::size_t column) {
  return m.transposed ? m.cells[column * m.stride + row] : m.cells[row * m.stride + column];
}

// Integers this small make every order of summation exact, so that only a wrong product differs.
void check_product(const Matrix& a, const Matrix& b) {
  std::vector<float> c(a.height() * b.width(), -1.0F);
  gemm(a, b, Into::overwrite, c);
  for (std::size_t i = 0; i < a.height(); ++i) {
    for (std::size_t j = 0; j < b.width(); ++j) {
      float expected = 0;
      for (std::size_t k = 0; k < a.width(); ++k) expected += cell(a, i, k) * cell(b, k, j);
      if (c[i * b.width() + j] == expected) continue;
      throw failure(Exit::usage,
                    "the CBLAS library computes wrong products: element ({}, {}) of {} x {} x {} is {}, expected {}; reinstall "
                    "libblis-serial-dev and rebuild",
                    i, j, a.height(), b.width(), a.width(), c[i * b.width() + j], expected);
    }
  }
}

}  // namespace

Matrix::Matrix(std::span<const float> all, std::size_t height, std::size_t width)
    : cells(all), rows(height), columns(width), stride(width) {
  if (all.size() != height * width)
    throw std::logic_error(fmt::format("{} cells for a {} x {} matrix", all.size(), height, width));
}

Matrix Matrix::columns_from(std::size_t first, std::size_t count) const {
  if (transposed || first + count > columns) throw std::logic_error(fmt::format("columns {} + {} of {}", first, count, columns));
  Matrix part = *this;
  part.cells = cells.subspan(rows == 0 ? 0 : first);
  part.columns = count;
  return part;
}

Matrix transpose(Matrix matrix) {
  matrix.transposed = !matrix.transposed;
  return matrix;
}

void gemm(const Matrix& a, const Matrix& b, Into mode, std::span<float> c) {
  const std::size_t m = a.height(), n = b.width(), k = a.width();
  if (b.height() != k || c.size() != m * n) {
    throw std::logic_error(fmt::format("gemm: {} x {} times {} x {} into {} cells", m, k, b.height(), n, c.size()));
  }
  if (k == 0 && mode == Into::overwrite) std::ranges::fill(c, 0.0F);
  if (m == 0 || n == 0 || k == 0) return;
  cblas_sgemm(CblasRowMajor, a.transposed ? CblasTrans : CblasNoTrans, b.transposed ? CblasTrans : CblasNoTrans,
              static_cast<int>(m), static_cast<int>(n), static_cast<int>(k), 1.0F, a.cells.data(), static_cast<int>(a.stride),
              b.cells.data(), static_cast<int>(b.stride), mode == Into::add ? 1.0F : 0.0F, c.data(), static_cast<int>(n));
}

void check_gemm() {
  // A shape below every register tile, and one above the tiles and the depth of a cache block, in all four orientations.
  const struct { std::size_t m, n, k; } shapes[] = {{5, 3, 7}, {37, 41, 300}};
  for (const auto& [m, n, k] : shapes) {
    const std::vector<float> a = small_integers(m * k, 1), b = small_integers(k * n, 4);
    const Matrix plain_a(a, m, k), plain_b(b, k, n);
    for (const Matrix& left : {plain_a, transpose(Matrix(a, k, m))}) {
      for (const Matrix& right : {plain_b, transpose(Matrix(b, n, k))}) check_product(left, right);
    }
  }
}

}  // namespace shoal::train
