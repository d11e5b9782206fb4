// SPDX-License-Identifier: Apache-2.0
// One bit an element and two values a column: the mean of those that are not negative, and the mean of the others. Pure functions
// on float32, any thread, no allocation; the same bits with every instruction set.
//
// Wire: the upper means of all columns, the lower means, the bits. Bits lie column beside column in 32-bit words, 32 rows a word,
// so that no vector unit has to turn them; of fewer rows only the bytes that they need. Little endian, any alignment.
//
// A column with a NaN or an infinity, or whose sum overflows, has NaN for both means.
#pragma once

#include <cstddef>

namespace shoal::compress::one_bit {

// Where the columns are.
struct Columns {
  // width columns of `rows` elements each, in a matrix whose rows are `stride` elements apart.
  static Columns of_matrix(std::size_t rows, std::size_t width, std::size_t stride) { return {rows, width, stride, 0}; }
  // n elements, `column` by `column`; the last column may be short. column: a multiple of 128.
  static Columns of_vector(std::size_t n, std::size_t column) { return {n, 1, 1, column}; }

  std::size_t count() const { return column == 0 ? width : (rows + column - 1) / column; }
  std::size_t elements() const { return rows * width; }
  // Exactly: 8 a column and a bit an element, rows (or a vector's elements) filled up to a multiple of 8.
  std::size_t wire_bytes() const { return 2 * sizeof(float) * count() + width * ((rows + 7) / 8); }

  std::size_t rows, width, stride;
  std::size_t column;  // 0: of a matrix
};

// Element i is scale * input[i] + residual[i]; without a residual (null) scale * input[i].
struct Meant {
  const float* input = nullptr;
  float scale = 1;
  const float* residual = nullptr;
};

void encode(const Columns& columns, const Meant& meant, std::byte* wire);
void decode(const Columns& columns, const std::byte* wire, float* out);
// sum += decoded
void decode_add(const Columns& columns, const std::byte* wire, float* sum);
// residual = scale * input + residual - decoded; of columns that are not finite it stays as it was.
void keep(const Columns& columns, const float* input, float scale, const std::byte* wire, float* residual);

}  // namespace shoal::compress::one_bit
