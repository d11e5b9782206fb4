// SPDX-License-Identifier: Apache-2.0
#include "perf/traffic.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <fstream>
#include <sstream>
#include <system_error>

namespace shoal::perf {
namespace {

constexpr std::uint64_t kUnit = 16;        // bytes that blocks are multiples of, as nccl-tests' are
constexpr double kMostBytes = 0x1p53;      // that a double counts exactly
constexpr std::size_t kMostRanks = 16384;  // of a matrix

std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

}  // namespace

std::uint64_t Traffic::block(std::uint64_t bytes, int from, int to, int world) const {
  if (!matrix.empty()) return matrix[static_cast<std::size_t>(from) * width + static_cast<std::size_t>(to)];
  const auto n = static_cast<double>(world);
  const auto distance = static_cast<double>((to - from + world) % world);
  const double weighted = world == 1 ? 1 : distance / (n * (n - 1) / 2);
  const double share = spread * weighted + (1 - spread) / n;
  return static_cast<std::uint64_t>(static_cast<double>(bytes) * share) / kUnit * kUnit;
}

std::uint64_t Traffic::most(std::uint64_t bytes, int world) const {
  std::uint64_t most = 0;
  // Without a matrix all ranks send and receive alike.
  for (int rank = 0; rank < (matrix.empty() ? 1 : world); ++rank) {
    std::uint64_t sent = 0, received = 0;
    for (int peer = 0; peer < world; ++peer) {
      sent += block(bytes, rank, peer, world);
      received += block(bytes, peer, rank, world);
    }
    most = std::max({most, sent, received});
  }
  return most;
}

std::string parse_matrix(const std::string& text, double scale, Traffic& traffic) {
  std::vector<std::uint64_t> matrix;
  std::size_t width = 0, rows = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::size_t columns = 0;
    for (std::string word; words >> word; ++columns) {
      const std::optional<double> value = parse_number(word);
      if (!value || *value < 0 || *value * scale > kMostBytes)
        return fmt::format("row {}, column {}: '{}' is no number of bytes", rows, columns, word);
      matrix.push_back(static_cast<std::uint64_t>(*value * scale) / kUnit * kUnit);
    }
    if (columns == 0) continue;
    if (rows++ == 0) width = columns;
    if (columns != width) return fmt::format("row {} has {} numbers, the rows before it {}", rows - 1, columns, width);
    if (width > kMostRanks) return fmt::format("has {} columns, at most {} are possible", width, kMostRanks);
  }
  if (rows != width || rows == 0) return fmt::format("has {} rows of {} numbers: must be a square", rows, width);
  traffic.matrix = std::move(matrix);
  traffic.width = width;
  return "";
}

std::string read_traffic(const std::function<std::optional<std::string>(const char*)>& get, int world, Traffic& traffic) {
  const auto number = [&get](const char* name, double most, double& into) {
    const std::optional<std::string> text = get(name);
    if (!text || text->empty()) return std::string();
    const std::optional<double> value = parse_number(*text);
    if (!value || *value < 0 || *value > most) return fmt::format("{} {}: must be a number from 0 to {:g}", name, *text, most);
    into = *value;
    return std::string();
  };
  constexpr double kMostScale = 1e12;
  double scale = 1;
  if (std::string why = number("NCCL_TESTS_ALLTOALLV_SPREAD", 1, traffic.spread); !why.empty()) return why;
  if (std::string why = number("NCCL_TESTS_ALLTOALLV_MATRIX_SCALE", kMostScale, scale); !why.empty()) return why;
  constexpr const char* kFile = "NCCL_TESTS_ALLTOALLV_MATRIX_FILE";
  const std::optional<std::string> path = get(kFile);
  if (!path || path->empty()) return "";
  std::ifstream file(*path);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf()))
    return fmt::format("{} {}: cannot be read: {}", kFile, *path, std::generic_category().message(errno));
  if (std::string why = parse_matrix(text.str(), scale, traffic); !why.empty())
    return fmt::format("{} {}: {}", kFile, *path, why);
  if (traffic.width < static_cast<std::size_t>(world))
    return fmt::format("{} {}: is of {} ranks, there are {}", kFile, *path, traffic.width, world);
  return "";
}

}  // namespace shoal::perf
