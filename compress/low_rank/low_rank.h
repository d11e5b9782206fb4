// SPDX-License-Identifier: Apache-2.0
// Products of a matrix with a few long vectors, for factors of low rank. A matrix comes by rows; a factor is `rank` vectors, one
// after the other: factor j of a P with one number a row begins at P + j * rows. Pure functions on float32, any thread. The bits
// of a result depend on the operands alone: additions have one order, for every instruction set.
#pragma once

#include <cstddef>

namespace shoal::compress::low_rank {

// Consecutive rows of a matrix; few of them, so that they stay in the cache.
struct Rows {
  const float* data = nullptr;  // row by row
  std::size_t first = 0;        // the first one's index in the matrix
  std::size_t count = 0;
  std::size_t columns = 0;
};

// p[j][first + i] = row i . q[j]: the rows' part of P = M Q. p: rank vectors of `height` numbers, q: of rows.columns.
void multiply(const Rows& rows, const float* q, std::size_t rank, float* p, std::size_t height);

// q[j] += sum over rows i of p[j][first + i] * row i: the rows' part of Q = M^T P.
void multiply_transposed(const Rows& rows, const float* p, std::size_t height, std::size_t rank, float* q);

// out = row `row` of P Q^T.
void expand(const float* p, std::size_t height, const float* q, std::size_t columns, std::size_t rank, std::size_t row,
            float* out);

// The vectors in place, orthogonal and of length one. One that depends on those before it, but for rounding, becomes zero: there
// is no direction in it that they have not. Gram-Schmidt; inner products are added in float64, so that lengths neither overflow
// nor vanish. `passes` 2 makes up for the cancellation that the first pass suffers from.
void orthonormalise(float* vectors, std::size_t length, std::size_t rank, int passes);

}  // namespace shoal::compress::low_rank
