// SPDX-License-Identifier: Apache-2.0
// Who sends how much to whom in all-to-all-v, as nccl-tests' variables say: a share of each rank's bytes that grows with the
// distance (NCCL_TESTS_ALLTOALLV_SPREAD, 0: all shares are equal, 1: none to itself, most to the rank before), or a file of bytes
// (NCCL_TESTS_ALLTOALLV_MATRIX_FILE, times NCCL_TESTS_ALLTOALLV_MATRIX_SCALE). Value type.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace shoal::perf {

struct Traffic {
  double spread = 1;                  // 0 to 1
  std::vector<std::uint64_t> matrix;  // row by row, bytes; empty: made by `spread`
  std::size_t width = 0;              // of a row

  // What rank `from` sends to rank `to` of `world` when each sends `bytes` in all; a multiple of 16, at most 2^53.
  std::uint64_t block(std::uint64_t bytes, int from, int to, int world) const;
  // The most that a rank of `world` sends or receives.
  std::uint64_t most(std::uint64_t bytes, int world) const;
};

// From variables that `get` knows (nothing for one that is not set), for `world` ranks. Returns "" or what is wrong, naming
// variable and value.
std::string read_traffic(const std::function<std::optional<std::string>(const char*)>& get, int world, Traffic& traffic);

// Whitespace between numbers, a line a row, as many rows as columns. Returns "" or why not.
std::string parse_matrix(const std::string& text, double scale, Traffic& traffic);

}  // namespace shoal::perf
