// SPDX-License-Identifier: Apache-2.0
// What a group of workers and servers agrees on, and what each rank has of its own. Value types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/status.h"
#include "core/types.h"
#include "ps/partition.h"

namespace shoal::ps {

enum class Mode : std::uint8_t { sync = 0, async = 1, ssp = 2 };
enum class Update : std::uint8_t { sum = 0, add = 1, sgd = 2, custom = 3 };
inline constexpr int kModes = 3;
inline constexpr int kUpdates = 4;
inline constexpr int kMaxRanks = 1 << 16;

struct Config {
  int workers = 0;
  int servers = 0;
  Count keys;
  DataType type = DataType::float32;
  Mode mode = Mode::sync;
  int staleness = 0;
  std::vector<std::size_t> shares;  // one a server, together `keys`
  Update update = Update::sum;
  double rate = 0;

  World world() const { return {workers + servers}; }
  bool is_worker(Rank rank) const { return rank.value < workers; }
  Rank rank_of_server(std::size_t server) const { return {workers + static_cast<int>(server)}; }
  std::size_t server_of(Rank rank) const { return static_cast<std::size_t>(rank.value - workers); }
  KeyRange all_keys() const { return {0, keys.value}; }
  friend bool operator==(const Config&, const Config&) = default;
};

using UpdateFunction = int (*)(std::size_t first, std::size_t count, void* weights, const void* gradient, int workers,
                               std::uint64_t iteration, void* user);

struct Own {
  std::size_t window = 64;             // worker: requests on their way
  const std::byte* initial = nullptr;  // server: values of all keys, read when it joins
  UpdateFunction function = nullptr;   // server: Update::custom
  void* user = nullptr;
};

// invalid_argument, naming the field, its value and what is allowed.
Status check(const Config& config);
// invalid_usage that names the first field in which they differ.
Status compare(Rank rank, const Config& mine, const Config& of_rank_0);

}  // namespace shoal::ps
