// SPDX-License-Identifier: Apache-2.0
#include "ps/partition.h"

#include <cstdint>

namespace shoal::ps {
namespace {

// floor(keys * part / whole), without a product that overflows: part <= whole <= 2^32.
std::size_t portion(std::size_t keys, std::uint64_t part, std::uint64_t whole) {
  return keys / whole * part + keys % whole * part / whole;
}

}  // namespace

Partition::Partition(std::span<const std::size_t> shares) {
  std::size_t first = 0;
  ranges_.reserve(shares.size());
  for (const std::size_t count : shares) {
    ranges_.push_back({first, count});
    first += count;
  }
}

std::vector<std::size_t> equal_shares(std::size_t keys, std::size_t servers) {
  std::vector<std::size_t> shares(servers);
  for (std::size_t i = 0; i < servers; ++i) shares[i] = portion(keys, i + 1, servers) - portion(keys, i, servers);
  return shares;
}

std::vector<std::size_t> balanced_shares(std::size_t keys, int worker_machines, int spare_machines) {
  const auto n = static_cast<std::uint64_t>(worker_machines), k = static_cast<std::uint64_t>(spare_machines);
  const bool all_on_spare = k >= n;
  const std::uint64_t whole = all_on_spare ? k : n * n + k * n - 2 * k;
  const std::uint64_t colocated = all_on_spare ? 0 : n - k, spare = all_on_spare ? 1 : 2 * (n - 1);
  std::vector<std::size_t> shares;
  std::uint64_t before = 0;
  for (std::uint64_t i = 0; i < n + k; ++i) {
    const std::uint64_t part = i < n ? colocated : spare;
    shares.push_back(portion(keys, before + part, whole) - portion(keys, before, whole));
    before += part;
  }
  return shares;
}

}  // namespace shoal::ps
