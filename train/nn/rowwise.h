// SPDX-License-Identifier: Apache-2.0
// What layers do to the rows of a matrix besides products. Pure functions; any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace shoal::train {

// Every row of `matrix` becomes `row`.
inline void fill_rows(std::span<const float> row, std::span<float> matrix) {
  for (std::size_t at = 0; at < matrix.size(); at += row.size())
    std::ranges::copy(row, matrix.begin() + static_cast<std::ptrdiff_t>(at));
}

// sums[j] = the sum of column j, rounded once: it is carried in double.
inline void column_sums(std::span<const float> matrix, std::span<float> sums) {
  std::vector<double> wide(sums.size());
  for (std::size_t at = 0; at < matrix.size(); at += sums.size()) {
    for (std::size_t j = 0; j < sums.size(); ++j) wide[j] += static_cast<double>(matrix[at + j]);
  }
  std::ranges::transform(wide, sums.begin(), [](double sum) { return static_cast<float>(sum); });
}

}  // namespace shoal::train
